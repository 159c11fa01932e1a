"""Assignment of records to tasks by the key groupings that split nodes evaluate."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.engine.hashing import Hashes
from workers.pipeline.routing.compiled_table import NO_LEADER, CompiledTable, Keyed
from workers.pipeline.routing.key_grouping import tasks_by_key
from workers.pipeline.split_nodes.grouping_states import StoredStates, packed_state, state_of

if TYPE_CHECKING:
    from algorithms.partitioning.grouping import GroupingState


@dataclass
class KeyRouter:
    """The key groupings of one split node in one batch, from the states in the offset."""

    table: CompiledTable
    stored: StoredStates = field(default_factory=dict)
    _states: "dict[int, GroupingState]" = field(default_factory=dict)

    def tasks_of(self, keyed: Keyed, hashes: Hashes, ts_ms: Int64s) -> Int64s:
        """Return the task of each record, from the hash of its key and its event time (ms)."""
        tasks, leader = len(keyed.owners), keyed.leader
        if leader == NO_LEADER or not len(hashes):
            return tasks_by_key(hashes, tasks)
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
