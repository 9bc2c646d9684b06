"""A control plane in one process: what `plan`, `render` and the black-box tests run the functions in.

The functions are the real ones, called the way Crossplane calls them. Simulated is only what is not ours: the API
server (`store`, `admission`), Crossplane (`crossplane`), providers and gateways (`providers`). `world` runs rounds of
them until nothing changes. Same manifests in, same objects out: uids, names and times are computed, never drawn.
"""

from modelplane.simulate.admission import Admission, RefusedError
from modelplane.simulate.crossplane import Crossplane, Pass
from modelplane.simulate.store import Deletion, Key, ProtectedError, Store
from modelplane.simulate.world import Settled, World

__all__ = [
    "Admission",
    "Crossplane",
    "Deletion",
    "Key",
    "Pass",
    "ProtectedError",
    "RefusedError",
    "Settled",
    "Store",
    "World",
]
