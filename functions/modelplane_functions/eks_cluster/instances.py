"""What Modelplane knows of EC2 instance types: their Elastic Fabric Adapters.

Source: the EC2 instance table that Karpenter generates, checked against the list of types that aws-dranet supports.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Efa:
    """EFA interfaces of an instance type: how many network cards there are, and whether card 0 carries EFA too."""

    cards: int
    first: bool = True


_ONE = Efa(1)

EFA: dict[str, Efa] = {
    "p5.48xlarge": Efa(32),
    "p5e.48xlarge": Efa(32),
    "p5en.48xlarge": Efa(16),
    "p6-b300.48xlarge": Efa(17, first=False),
    "p6-b200.48xlarge": Efa(8),
    "p4d.24xlarge": Efa(4),
    "p4de.24xlarge": Efa(4),
    "g6e.48xlarge": Efa(4),
    "g7e.48xlarge": Efa(4),
    "g6e.24xlarge": Efa(2),
    "g7e.24xlarge": Efa(2),
    "p5.4xlarge": _ONE,
    "p3dn.24xlarge": _ONE,
    **{f"g6e.{size}xlarge": _ONE for size in (8, 12, 16)},
    **{f"g7e.{size}xlarge": _ONE for size in (8, 12)},
    **{f"g6.{size}xlarge": _ONE for size in (8, 12, 16, 24, 48)},
    "gr6.8xlarge": _ONE,
    **{f"g5.{size}xlarge": _ONE for size in (8, 12, 16, 24, 48)},
    **{f"g4dn.{size}xlarge": _ONE for size in (8, 12, 16)},
}


def interfaces(efa: Efa) -> list[tuple[int, int, str]]:
    """Network interfaces as (card, device, type), as AWS recommends: the first carries IP traffic, the rest EFA."""
    if efa.cards == 1:
        return [(0, 0, "efa")]
    layout = [(0, 0, "interface")]
    if efa.first:
        layout.append((0, 1, "efa-only"))
    layout.extend((card, 0, "efa-only") for card in range(1, efa.cards))
    return layout
