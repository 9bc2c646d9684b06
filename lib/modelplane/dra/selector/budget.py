"""What the selectors of one reconcile may cost, and what is remembered between reconciles."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from modelplane.dra.selector.errors import BudgetExceeded

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Budget:
    """Steps of about 50 ns: at most `per_evaluation` for one selector on one device, `total` for all together.

    What is remembered is charged as if it were done again, so that whether the budget suffices depends on the request
    alone. `evaluations` counts those really performed, `charged` all of them.
    """

    per_evaluation: int = 100_000
    total: int = 5_000_000
    evaluations: int = 0
    charged: int = 0
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.total

    def charge(self, steps: int) -> None:
        """Take steps. Raises BudgetExceeded when there were not enough."""
        self.left -= steps
        if self.left < 0:
            raise BudgetExceeded(f"the selectors take more than {self.total} steps")


class Recent(Generic[K, V]):
    """The most recently used entries, for all threads of the process."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The entry, or None."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Remember an entry; the least recently used goes."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self._limit:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._entries.clear()
