"""Key grouping: the hash of a key names its worker (paper 002, section III-B)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from algorithms.partitioning.grouping import Feedback, Grouping, GroupingState, Messages, Workers
from algorithms.partitioning.groupings.hash_choice import SlotTable, hashed_workers, reciprocal
from algorithms.vocabulary import Ints, parameter

slot_table = lru_cache(maxsize=64)(SlotTable.of)


@dataclass(frozen=True)
class KeyGrouping(Grouping[GroupingState]):
    """Sends all messages of a key to the worker that the hash of the key names."""

    name: ClassVar[str] = "key"

    weighted: bool = parameter(
        default=False,
        title="Use the capacities",
        help="Whether workers receive keys in proportion to their capacities.",
    )

    def start(self, workers: Workers) -> GroupingState:
        """Return a state without content: the key alone decides."""
        return GroupingState(self.of_workers(workers))

    def route(self, state: GroupingState, messages: Messages) -> tuple[Ints, GroupingState]:
        """Return the worker of each message, and the same state."""
        result = np.empty(len(messages), np.int64)
        table = slot_table(state.workers)
        factor = reciprocal(table.count)
        hashed_workers(messages.keys, factor, table.count, table.thresholds, table.others, result)
        return result, state

    def combined(
        self,
        before: GroupingState,
        after: Sequence[GroupingState],
        feedback: Feedback | None = None,
    ) -> GroupingState:
        """Return the same state."""
        return before

    def pack(self, state: GroupingState) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def unpack(self, workers: Workers, row: Mapping[str, Any]) -> GroupingState:
        """Return a state without content."""
        return self.start(workers)
