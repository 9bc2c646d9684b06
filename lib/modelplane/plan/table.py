"""Draw a report for people: aligned text, bars where the output is a terminal."""

from collections import Counter
from collections.abc import Iterable, Sequence

from modelplane.plan.report import Built, Composite, PoolUse, Report
from modelplane.plan.timeline import CLOUDS

TREE_MAX = 150
"""More objects than this are counted by kind below each composite instead of listed."""
COUNTED = frozenset({"ClusterUsage", "Usage"})
"""Kinds that are only counted: what keeps objects until others are gone."""
BAR = 20
WIDTH = 100


def draw(report: Report, *, terminal: bool) -> str:
    """The whole report as text."""
    sections = [
        _section("Composed", _tree(report)),
        _section("Clusters to build", [line for cluster in report.built for line in _built(cluster)]),
        _section("Assumed to exist", list(report.assumed)),
        _section("Placements", _placements(report)),
        _section("Not placed", _unplaced(report)),
        _section("Fleet", _fleet(report, terminal=terminal)),
        _section("Services", _services(report)),
        _section("Changes", _changes(report)),
        _section("Warnings", [f"- {w}" for w in report.warnings]),
    ]
    effort = report.effort
    tail = (
        f"{effort.objects} objects after {effort.rounds} rounds, {effort.reconciles} reconciles and "
        f"{effort.calls} function calls. Nothing was applied."
    )
    return "\n\n".join([*(s for s in sections if s), tail]) + "\n"


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)]) if lines else ""


def _columns(rows: Iterable[Sequence[str]]) -> list[str]:
    table = [list(row) for row in rows]
    if not table:
        return []
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _built(cluster: Built) -> list[str]:
    name = f"{cluster.namespace}/{cluster.name}" if cluster.namespace else cluster.name
    lines = [
        f"{cluster.kind} {name}: {cluster.objects} objects, ready after about {cluster.minutes} minutes (estimate)"
    ]
    for step in cluster.steps:
        made = [kind if count == 1 else f"{count} {kind}" for kind, count in step.kinds.items()]
        lines.append(f"    minute {step.minute}{f', after {step.after}' if step.after else ''}")
        lines += [f"        {line}" for line in _wrapped(made)]
    return lines


def _wrapped(words: Iterable[str]) -> list[str]:
    """Words in lines of WIDTH, with commas; a word is never broken."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) + 2 <= WIDTH:
            lines[-1] += f", {word}"
        else:
            lines = [*lines[:-1], f"{lines[-1]},", word] if lines else [word]
    return lines


def _placements(report: Report) -> list[str]:
    if not report.placements:
        return []
    rows = [["DEPLOYMENT", "REPLICA", "CLUSTER", "POOL", "DEVICES", "SERVES"]]
    for placed in report.placements:
        pools = ", ".join(dict.fromkeys(d.pool for d in placed.devices)) or "-"
        devices = ", ".join(f"{d.count} {d.device}" for d in placed.devices) or "-"
        name = f"{placed.namespace}/{placed.deployment or '(by hand)'}"
        rows.append([name, placed.replica, placed.cluster, pools, devices, "yes" if placed.ready else "no"])
    return _columns(rows)


def _unplaced(report: Report) -> list[str]:
    lines = []
    for entry in report.unplaced:
        head = f"{entry.namespace}/{entry.deployment}: {entry.missing} of {entry.desired}"
        lines.append(f"{head}  {entry.reason}" if entry.reason else head)
        if entry.message:
            lines += [f"    {line}" for line in entry.message.splitlines()]
        lines += [f"    nearest miss: {miss}" for miss in entry.nearest]
    return lines


def _fleet(report: Report, *, terminal: bool) -> list[str]:
    if not report.pools:
        return []
    rows = [["CLUSTER", "POOL", "CLASS", "NODES", "DEVICES", "FREE", "STRANDED", *(["USE"] if terminal else [])]]
    for use in report.pools:
        row = [use.cluster, use.pool if use.ready else f"{use.pool} (not ready)", use.class_name or "-"]
        row += [f"{use.nodes_used}/{use.nodes}", f"{use.used}/{use.total} {use.device}", str(use.total - use.used)]
        row.append(str(use.stranded) if use.stranded else "-")
        if terminal:
            row.append(_bar(use))
        rows.append(row)
    lines = _columns(rows)
    for currency, sums in report.cost.items():
        lines.append(f"{sums['used']} {currency} an hour for the nodes in use, {sums['all']} for all")
    return lines


def _bar(use: PoolUse) -> str:
    if not use.total:
        return ""
    used = round(BAR * use.used / use.total)
    stranded = min(BAR - used, round(BAR * use.stranded / use.total))
    return "█" * used + "▒" * stranded + "░" * (BAR - used - stranded)


def _services(report: Report) -> list[str]:
    lines = []
    for service in report.services:
        state = "" if service.ready else "  (not ready)"
        lines.append(f"{service.namespace}/{service.name}  {service.url or 'no address yet'}{state}")
        rows = [
            [f"{b.share:.1f}%", b.endpoint, b.cluster or "outside the fleet", "" if b.healthy else "not healthy"]
            for b in service.backends
        ]
        lines += [f"    {line}" for line in _columns(rows)]
    return lines


def _changes(report: Report) -> list[str]:
    changes = report.changes
    if changes is None:
        return []
    lines = []
    for sign, names in (("+", changes.added), ("~", changes.changed), ("-", changes.deleted)):
        counted: dict[str, int] = {}
        for name in names:
            kind = name.split(" ", 1)[0]
            if kind in COUNTED:
                counted[kind] = counted.get(kind, 0) + 1
            else:
                lines.append(f"{sign} {name}")
        lines += [f"{sign} {count} {kind}" for kind, count in sorted(counted.items())]
    return lines or ["none"]


def _tree(report: Report) -> list[str]:
    short = sum(_count(c) for c in report.composites) > TREE_MAX
    lines: list[str] = []
    for composite in report.composites:
        lines.append(_label(composite))
        lines += _below(composite, "", short=short)
    return lines


def _count(composite: Composite) -> int:
    return 1 + sum(_count(child) for child in composite.children)


def _below(composite: Composite, indent: str, *, short: bool) -> list[str]:
    counted = [c for c in composite.children if not c.children and (short or c.kind in COUNTED)]
    shown: list[tuple[str, Composite | None]] = []
    for child in (c for c in composite.children if c not in counted):
        same = _same(composite, child)
        if len(same) < 2:
            shown.append((_label(child), child))
        elif same[0] is child:
            waiting = sum(c.ready is False for c in same)
            state = f"  ({waiting} not ready)" if waiting else ""
            shown.append((f"{len(same)} {child.kind}{state}", None))
    kinds = Counter(child.kind for child in counted)
    if kinds:
        shown.append((", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())), None))
    lines = []
    for index, (label, below) in enumerate(shown):
        last = index == len(shown) - 1
        lines.append(f"{indent}{'└─ ' if last else '├─ '}{label}")
        if below is not None:
            lines += _below(below, indent + ("   " if last else "│  "), short=short)
    return lines


def _same(composite: Composite, child: Composite) -> list[Composite]:
    """Objects of a cloud that only their generated names tell apart from a child, with itself."""
    if composite.kind not in CLOUDS or child.children or child.manifest:
        return []
    return [c for c in composite.children if c.kind == child.kind and not c.children and not c.manifest]


def _label(composite: Composite) -> str:
    head = f"{composite.kind}: {composite.manifest}" if composite.manifest else f"{composite.kind} {composite.name}"
    if composite.cluster:
        head += f" on {composite.cluster}"
    return head if composite.ready is not False else f"{head}  (not ready)"
