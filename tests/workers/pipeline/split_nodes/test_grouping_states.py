"""States of key groupings in the offset: combined from the reports, within their bounds."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import redis

from algorithms.partitioning.catalog import grouping_text
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetCapacity
from controlplane.wire.routing.query_actions import (
    AddQuery,
    MoveTasks,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.routing.route import TaskRange
from tests.support.tables import compiled
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.routing.key_grouping import BacklogLoad, NodeLoads
from workers.pipeline.split_nodes import grouping_states
from workers.pipeline.split_nodes.grouping_states import (
    StatePlan,
    StoredState,
    StoredStates,
    feedback_of,
    read_reports,
    workers_of,
    write_reports,
)

TEXT = json.dumps(QueryText({"n": "count(*)"}, key=["car"]).to_json())
PARTIAL, SHUFFLE = grouping_text("partial_key"), grouping_text("shuffle")
TASKS: tuple[TaskRange, ...] = ((0, 0, 2), (1, 2, 3))


def query(pk: int, grouping: str = PARTIAL, tasks: tuple[TaskRange, ...] = TASKS) -> AddQuery:
    return AddQuery(pk, 0, 0, (1,), TEXT, tasks, grouping, aggregator=1)


def table_of(*actions: Action) -> CompiledTable:
    return compiled(AssignStream(1, 0), *actions)


def planned(
    table: CompiledTable,
    stored: StoredStates | None = None,
    reports: Mapping[int, Sequence[str]] | None = None,
    before: CompiledTable | None = None,
    loads: NodeLoads | None = None,
) -> dict[int, StoredState]:
    return StatePlan(stored or {}, reports or {}, before, table, loads or {}, 1_000).states()


def loads_in(packed: str) -> list[int]:
    loads: list[int] = json.loads(packed)["load"]
    return loads


def state(*loads: int, text: str = PARTIAL) -> StoredState:
    return StoredState(text, len(loads), json.dumps({"load": loads, "routed": sum(loads)}))


def test_a_query_begins_with_the_first_state() -> None:
    (first,) = planned(table_of(query(7))).values()
    assert (first.text, first.tasks, loads_in(first.packed)) == (PARTIAL, 3, [0, 0, 0])
    assert planned(table_of(query(7, ""), query(8, grouping_text("key", {"weighted": True})))) == {}


def test_increments_of_all_split_nodes_are_added() -> None:
    table = table_of(query(7))
    reports = {7: [state(5, 1, 1).packed, state(1, 1, 4).packed]}
    found = planned(table, {7: state(1, 1, 1)}, reports)
    assert loads_in(found[7].packed) == [5, 1, 4]
    assert loads_in(planned(table, {7: state(1, 1, 1)})[7].packed) == [1, 1, 1], "no report"


def test_a_state_begins_anew_with_another_grouping_or_number_of_tasks() -> None:
    reports = {7: [state(5, 1, 1).packed]}
    for change in (SetKeyGrouping(7, SHUFFLE), SetTaskCount(7, 2, ())):
        found = planned(table_of(query(7), change), {7: state(1, 1, 1)}, reports)
        assert not any(loads_in(found[7].packed))


def test_a_state_survives_moves_and_the_end_of_the_leading_query() -> None:
    """Queries with one key grouping share its state; each keeps it when they part."""
    before = table_of(query(7), query(8), query(9))
    assert before.leaders == {7: 7, 8: 7, 9: 7}
    stored, reports = {7: state(1, 1, 1)}, {7: [state(5, 1, 1).packed]}
    moved = table_of(query(7), query(8), query(9), MoveTasks(9, ((2, 0, 1),)))
    assert moved.leaders == {7: 7, 8: 7, 9: 9}
    found = planned(moved, stored, reports, before)
    assert {pk: loads_in(row.packed) for pk, row in found.items()} == {7: [5, 1, 1], 9: [5, 1, 1]}
    ended = table_of(query(8), query(9))
    found = planned(ended, stored, reports, before)
    assert {pk: loads_in(row.packed) for pk, row in found.items()} == {8: [5, 1, 1]}


def test_other_streams_keys_and_groupings_have_states_of_their_own() -> None:
    other_key = json.dumps(QueryText({"n": "count(*)"}, key=["speed"]).to_json())
    other_window = json.dumps(QueryText({"n": "count(*)"}, key=["car"], window_s=7).to_json())
    table = table_of(
        AssignStream(2, 0),
        query(1),
        query(2, SHUFFLE),
        AddQuery(3, 0, 0, (2,), TEXT, TASKS, PARTIAL, aggregator=1),
        AddQuery(4, 0, 0, (1,), other_key, TASKS, PARTIAL, aggregator=1),
        AddQuery(5, 0, 0, (1,), other_window, TASKS, PARTIAL, aggregator=1),
        AddQuery(6, 0, 0, (1,), other_window, TASKS, grouping_text("panes"), aggregator=1),
        query(7, grouping_text("panes")),
    )
    assert table.leaders == {1: 1, 2: 2, 3: 3, 4: 4, 5: 1, 6: 6, 7: 7}


def test_tasks_share_the_capacity_of_their_node() -> None:
    """Node 0 has two tasks and 600 records/s, node 1 one task and 900 records/s."""
    capacities = SetCapacity(0, 600.0, emulated=True), SetCapacity(1, 900.0, emulated=False)
    owners = (0, 0, 1)
    shares = workers_of(table_of(query(7), *capacities), owners).shares
    assert shares == pytest.approx(np.array([0.2, 0.2, 0.6]))
    for known in ((), capacities[:1]):
        shares = workers_of(table_of(query(7), *known), owners).shares
        assert shares == pytest.approx(np.array([0.25, 0.25, 0.5])), "nodes count alike"


def test_nodes_report_for_their_tasks() -> None:
    loads = {0: BacklogLoad(10, 0.5), 1: BacklogLoad(7, 1.0)}
    found = feedback_of((0, 0, 1), loads, 1_000)
    assert found.utilisation is not None
    assert found.waiting is not None
    assert found.utilisation.tolist() == [0.5, 0.5, 1.0]
    assert found.waiting.tolist() == [5, 5, 7]
    unknown = feedback_of((0, 2), loads, 1_000)
    assert (unknown.now_ms, unknown.utilisation, unknown.waiting) == (1_000, None, None)


def test_the_bounds_of_the_offset_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries beyond them have no state, the first ones keep theirs."""
    texts = [grouping_text("random_choices", {"seed": seed}) for seed in range(4)]
    table = table_of(*(query(pk, text) for pk, text in enumerate(texts, start=1)))
    assert list(planned(table)) == [1, 2, 3, 4]
    size = len(planned(table)[1].packed)
    monkeypatch.setattr(grouping_states, "MAX_CHARS", 3 * size)
    assert list(planned(table)) == [1, 2, 3]
    monkeypatch.setattr(grouping_states, "MAX_STATES", 2)
    assert list(planned(table)) == [1, 2]
    monkeypatch.setattr(grouping_states, "MAX_STATE_CHARS", size - 1)
    assert list(planned(table)) == []


def test_an_unreadable_state_begins_anew() -> None:
    table = table_of(query(7))
    damaged = {7: StoredState(PARTIAL, 3, '{"load": [1]}')}
    assert loads_in(planned(table, damaged)[7].packed) == [0, 0, 0]
    assert planned(table, {7: state(1, 1, 1)}, {7: ['{"load": "x"}']}) == {}, "started at splits"


def test_reports_are_those_of_the_newest_batch(redis_client: "redis.Redis") -> None:
    """In the order of the split nodes; a batch without states keeps the ones before."""
    assert read_reports(redis_client, "c").batch == -1
    sources: list[dict[str, Any]] = [
        {"split": 1, "groupings": {"7": "b"}},
        {"split": 0, "groupings": {"7": "a", "8": "c"}},
        {"split": 2},
    ]
    write_reports(redis_client, "c", 5, sources)
    found = read_reports(redis_client, "c")
    assert (found.batch, found.states) == (5, {7: ["a", "b"], 8: ["c"]})
    write_reports(redis_client, "c", 6, [{"split": 0}])
    assert read_reports(redis_client, "c").batch == 5
