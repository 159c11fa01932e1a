"""Key groupings that split nodes evaluate, and their states between micro-batches.

The split nodes route a batch from the states in its offset, so that a replay decides alike, and
report the states after it. The driver stores the reports of the newest batch; `latestOffset`
combines them, with the loads that nodes reported, to the states of the next batch. The offset is
written before every batch and has a bounded size: key groupings beyond the bound start without a
state in every batch; that is exact, too.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import redis

from algorithms.errors import BadProblem
from controlplane.wire import keys
from controlplane.wire.foreign.entries import EntryLocation, decoded, json_of, whole
from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.engine.hashing import Hashes
from workers.pipeline.routing.compiled_table import NO_LEADER, CompiledTable, Keyed, RoutedKeys
from workers.pipeline.routing.key_grouping import KeyMapping, NodeLoads, tasks_by_key

if TYPE_CHECKING:
    from algorithms.partitioning.grouping import Feedback, Grouping, GroupingState, Workers

logger = logging.getLogger("weir.pipeline")

# Key groupings with a state, characters of one state and of all of them.
MAX_STATES: Final = 64
MAX_STATE_CHARS: Final = 16_384
MAX_CHARS: Final = 262_144


class StoredState(NamedTuple):
    """The state of a key grouping for a number of tasks; `packed`: as JSON."""

    text: str
    tasks: int
    packed: str

    def fits(self, routed: RoutedKeys) -> bool:
        """Return whether this is a state of a key grouping with its present tasks."""
        return (self.text, self.tasks) == (routed.grouping.text, len(routed.owners))


# By leading query.
StoredStates = Mapping[int, StoredState]


@dataclass(frozen=True, slots=True)
class StateReports:
    """The packed states that the split nodes reported after a batch, by leading query."""

    batch: int = -1
    states: Mapping[int, Sequence[str]] = field(default_factory=dict)


def write_reports(
    client: "redis.Redis", cluster: str, batch: int, sources: Iterable[Mapping[str, Any]]
) -> None:
    """Store what the split nodes reported after a batch; the next batch replaces it."""
    states: dict[str, list[str]] = {}
    # By split node: the order of addition of floats must not depend on the order of arrival.
    for source in sorted(sources, key=lambda item: item["split"]):
        for query, packed in source.get("groupings", {}).items():
            states.setdefault(query, []).append(packed)
    if states:
        row = json.dumps({"batch": batch, "states": states}, separators=(",", ":"))
        client.set(keys.groupings_key(cluster), row)


def read_reports(client: "redis.Redis", cluster: str) -> StateReports:
    """Return the stored reports, those of batch -1 if there are none."""
    data = client.get(keys.groupings_key(cluster))
    if data is None:
        return StateReports()
    reports = decoded(client, cluster, EntryLocation.GROUPINGS, _reports_of, data)
    return StateReports() if reports is None else reports


def _reports_of(data: bytes) -> StateReports:
    row = json_of(data)
    return StateReports(whole(row["batch"]), {int(q): item for q, item in row["states"].items()})


def workers_of(table: CompiledTable, owners: Sequence[int]) -> "Workers":
    """Return the tasks as workers: each has an equal part of the capacity of its node.

    Nodes without a declared capacity count like the average of the others.
    """
    nodes = table.table.nodes
    declared = tuple(nodes[node].capacity if node in nodes else 0.0 for node in owners)
    return _workers(tuple(owners), declared)


@lru_cache(maxsize=1024)
def _workers(owners: tuple[int, ...], declared: tuple[float, ...]) -> "Workers":
    from algorithms.partitioning.grouping import Workers  # noqa: PLC0415 - not in every process

    known = {
        node: capacity for node, capacity in zip(owners, declared, strict=True) if capacity > 0
    }
    usual = sum(known.values()) / len(known) if known else 1.0
    tasks = {node: owners.count(node) for node in set(owners)}
    return Workers.of(len(owners), [known.get(node, usual) / tasks[node] for node in owners])


@lru_cache(maxsize=1024)
def _first_state(grouping: KeyMapping, workers: "Workers") -> "GroupingState":
    state: GroupingState = grouping.load().start(workers)
    return state


def state_of(
    routed: RoutedKeys, table: CompiledTable, stored: StoredState | None
) -> "GroupingState":
    """Return the stored state of a key grouping, or its first one.

    The first one where none is stored, or one of another key grouping or number of tasks.
    """
    workers = workers_of(table, routed.owners)
    if stored is None or not stored.fits(routed):
        return _first_state(routed.grouping, workers)
    try:
        state: GroupingState = routed.grouping.load().unpack(workers, json.loads(stored.packed))
    except BadProblem as error:
        logger.warning("a state of %s is unreadable: %s", routed.grouping.text, error)
        return _first_state(routed.grouping, workers)
    return state


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
        from algorithms.partitioning.grouping import Messages  # noqa: PLC0415

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


def feedback_of(owners: Sequence[int], loads: NodeLoads, now_ms: int) -> "Feedback":
    """Return what the nodes of tasks reported, by task; tasks of a node share what waits there."""
    from algorithms.partitioning.grouping import Feedback  # noqa: PLC0415

    known = [loads[node] for node in owners if node in loads]
    if len(known) < len(owners):
        return Feedback(now_ms)
    used = np.array([load.utilisation for load in known], np.float64)
    waiting = [load.waiting // owners.count(node) for node, load in zip(owners, known, strict=True)]
    return Feedback(now_ms, used, np.array(waiting, np.int64))


@dataclass(frozen=True)
class StatePlan:
    """The inputs for the states of the next batch.

    `stored`: the states of the batch before, `reports`: those after it; `before`, `table`: the
    routing tables of both (None: unknown). `loads`: of nodes; `now_ms`: clock of the next batch.
    """

    stored: StoredStates
    reports: Mapping[int, Sequence[str]]
    before: CompiledTable | None
    table: CompiledTable
    loads: NodeLoads
    now_ms: int

    def states(self) -> dict[int, StoredState]:
        """Return the states from which the split nodes route the next batch, within the bounds."""
        wanted = [q for q, routed in self.table.routed_keys.items() if routed.grouping.is_stateful]
        result: dict[int, StoredState] = {}
        size = 0
        for query in wanted[:MAX_STATES]:
            state = self._state(query, self.table.routed_keys[query])
            if state is not None and size + len(state.packed) <= MAX_CHARS:
                result[query] = state
                size += len(state.packed)
        _warn_of_fresh(tuple(query for query in wanted if query not in result))
        return result

    def _state(self, query: int, routed: RoutedKeys) -> StoredState | None:
        """Return the state of a key grouping; None if it is too large or cannot be computed."""
        try:
            packed = self._packed(query, routed)
        except Exception:
            # The split nodes route without a state, by the same code, and report a fault.
            logger.exception("the state of the key grouping of query %s is lost", query)
            return None
        if len(packed) > MAX_STATE_CHARS:
            return None
        return StoredState(routed.grouping.text, len(routed.owners), packed)

    def _packed(self, query: int, routed: RoutedKeys) -> str:
        source = self._source(query)
        stored, grouping = self.stored.get(source), routed.grouping.load()
        before = state_of(routed, self.table, stored)
        after = []
        if stored is not None and stored.fits(routed):
            rows = map(json.loads, self.reports.get(source, ()))
            workers = workers_of(self.table, routed.owners)
            after = [grouping.unpack(workers, row) for row in rows]
        feedback = feedback_of(routed.owners, self.loads, self.now_ms)
        return packed_state(grouping, grouping.combined(before, after, feedback))

    def _source(self, query: int) -> int:
        """Return the query that led a query in the batch before: it has the state."""
        if query in self.stored or self.before is None:
            return query
        return self.before.leaders.get(query, query)


def packed_state(grouping: "Grouping[Any]", state: "GroupingState") -> str:
    """Return a state as JSON."""
    return json.dumps(grouping.pack(state), separators=(",", ":"))


@lru_cache(maxsize=64)
def _warn_of_fresh(queries: tuple[int, ...]) -> None:
    """Log once that key groupings have no state in the offset."""
    if queries:
        logger.warning(
            "the states of the key groupings of %s queries exceed the bounds of the offset: they "
            "start without a state in every micro-batch; the first is query %s",
            len(queries), queries[0],
        )  # fmt: skip
