"""Assignment of records to tasks by the key groupings that split nodes evaluate."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.engine.hashing import Hashes
from workers.pipeline.routing.compiled_table import NO_LEADER, CompiledTable, Keyed
from workers.pipeline.routing.key_grouping import EARLIER_PARTIAL_KEY, NodeLoads, tasks_by_key
from workers.pipeline.split_nodes.grouping_states import StoredStates, packed_state, state_of

if TYPE_CHECKING:
    from algorithms.partitioning.grouping import State


@dataclass
class KeyRouter:
    """The key groupings of one split node in one batch, from the states in the offset.

    `earlier`: the loads of nodes in an offset of the earlier release, which had no states.
    """

    table: CompiledTable
    stored: StoredStates = field(default_factory=dict)
    earlier: NodeLoads | None = None
    _states: "dict[int, State]" = field(default_factory=dict)

    def tasks_of(self, keyed: Keyed, hashes: Hashes, ts_ms: Int64s) -> Int64s:
        """Return the task of each record, from the hash of its key and its event time (ms)."""
        tasks, leader = len(keyed.owners), keyed.leader
        if leader == NO_LEADER or not len(hashes):
            return tasks_by_key(hashes, tasks)
        if self.earlier is not None and keyed.grouping.text == EARLIER_PARTIAL_KEY:
            return earlier_tasks(hashes, keyed.owners, self.earlier)
        from algorithms.partitioning.grouping import Messages  # noqa: PLC0415 - not in every process

        if leader not in self._states:
            routed, stored = self.table.routed_keys[leader], self.stored.get(leader)
            self._states[leader] = state_of(routed, self.table, stored)
        messages = Messages(hashes, ts_ms if keyed.grouping.needs_times else None)
        state = self._states[leader]
        result, after = keyed.grouping.load().route(state, messages)
        if result.min() < 0 or result.max() >= tasks:
            raise IndexError(f"{keyed.grouping.text} routes to task {result.max()} of {tasks}")
        self._states[leader] = after
        return result

    def report(self) -> dict[str, Any]:
        """Return for the report of the split node the states after the batch, by leading query.

        Of key groupings with a state in the offset; `fresh` are the others that need one.
        """
        routed = self.table.routed_keys
        states = {
            str(query): packed_state(routed[query].grouping.load(), state)
            for query, state in self._states.items()
            if query in self.stored
        }
        fresh = [
            query for query in self._states
            if query not in self.stored and routed[query].grouping.is_stateful
        ]  # fmt: skip
        return ({"groupings": states} if states else {}) | ({"fresh": fresh} if fresh else {})


def earlier_tasks(hashes: Hashes, owners: tuple[int, ...], loads: NodeLoads) -> Int64s:
    """Return the tasks as the earlier release did: partial key grouping, by the loads of nodes.

    A batch that it began and did not finish is replayed with its decisions.
    """
    from algorithms.partitioning.grouping import Workers  # noqa: PLC0415
    from algorithms.partitioning.groupings.partial_key import two_workers  # noqa: PLC0415

    nodes = np.array(owners)
    load = np.zeros(len(owners))
    for node, signal in loads.items():
        selected = nodes == node
        load[selected] = signal.waiting / max(1, int(selected.sum()))
    workers, sent = Workers.of(len(owners)), load.tolist()
    known, places = np.unique(hashes, return_inverse=True)
    choices = [two_workers(workers, key) for key in known.tolist()]
    result = np.empty(len(hashes), np.int64)
    for record, place in enumerate(places.tolist()):
        first, second = choices[place]
        result[record] = task = first if sent[first] <= sent[second] else second
        sent[task] += 1.0
    return result
