"""Key groupings at a split node: from the states of the offset, reported after the batch."""

import json

import numpy as np
import pytest

from algorithms.partitioning.catalog import grouping_text
from tests.workers.pipeline.split_nodes.test_dispatch import entry
from tests.workers.pipeline.split_nodes.test_grouping_states import (
    PARTIAL,
    SHUFFLE,
    loads_in,
    planned,
    query,
    state,
    table_of,
)
from workers.pipeline.routing.compiled_table import CompiledTable, Keyed
from workers.pipeline.routing.key_grouping import BacklogLoad, tasks_by_key
from workers.pipeline.split_nodes.dispatch import dispatch
from workers.pipeline.split_nodes.grouping_states import KeyRouter

HASHES = np.random.default_rng(3).integers(0, 2**63, 2_000).astype(np.uint64)
HOT = np.where(np.arange(2_000) % 10 == 0, HASHES, HASHES[0])
TIMES = np.zeros(2_000, np.int64)


def keyed(table: CompiledTable) -> Keyed:
    return table.keyed_reader(7, 1)


def test_plain_key_grouping_has_no_state() -> None:
    table = table_of(query(7, ""))
    router = KeyRouter(table)
    tasks = router.tasks_of(keyed(table), HASHES, TIMES)
    assert (tasks == tasks_by_key(HASHES, 3)).all()
    assert router.report() == {}


def test_a_batch_continues_from_the_state_of_the_offset() -> None:
    """The same state gives the same tasks; the report has the state after all streams."""
    table = table_of(query(7, SHUFFLE))
    stored = planned(table, {7: state(10, 0, 0, text=SHUFFLE)})
    first, again = KeyRouter(table, stored), KeyRouter(table, stored)
    tasks = [router.tasks_of(keyed(table), HASHES[:30], TIMES) for router in (first, again)]
    assert (tasks[0] == tasks[1]).all()
    assert first.report() == again.report()
    assert sum(loads_in(first.report()["groupings"]["7"])) == 40
    first.tasks_of(keyed(table), HASHES[:5], TIMES)
    assert sum(loads_in(first.report()["groupings"]["7"])) == 45
    assert "fresh" not in first.report()


def test_without_a_state_in_the_offset_a_batch_starts_anew() -> None:
    table = table_of(query(7))
    first, again = KeyRouter(table), KeyRouter(table)
    tasks = [router.tasks_of(keyed(table), HOT, TIMES) for router in (first, again)]
    assert (tasks[0] == tasks[1]).all()
    assert first.report() == {"fresh": [7]}


def test_a_hot_key_is_shared_and_backlogs_are_avoided() -> None:
    table = table_of(query(7))
    loads = {0: BacklogLoad(100_000, 1.0), 1: BacklogLoad(0, 0.1)}
    tasks = {}
    for name, known in (("balanced", {}), ("backlog", loads)):
        router = KeyRouter(table, planned(table, loads=known))
        tasks[name] = np.bincount(router.tasks_of(keyed(table), HOT, TIMES), minlength=3)
    assert np.bincount(tasks_by_key(HOT, 3)).max() > 1_750
    assert tasks["balanced"].max() < 1_300
    assert tasks["backlog"][2] > tasks["balanced"][2]


def test_queries_with_one_leader_share_the_tasks() -> None:
    """The records of all of them carry one column, and the state counts them once."""
    table = table_of(query(7), query(8))
    router = KeyRouter(table, planned(table))
    routed = dispatch({1: [entry("5-0", *range(60))]}, table, 2, {}, router)
    report = routed.envelopes[0][0].source
    assert sum(loads_in(report["groupings"]["7"])) == 60
    assert list(report["groupings"]) == ["7"]
    for envelopes in routed.envelopes:
        assert [*envelopes[0].extras] == ["task of 7"]
    intakes = {group.intake.column for group in table.tasks_of_node(0).groups}
    assert intakes == {"task of 7"}


def test_a_grouping_that_cannot_route_sends_all_records_to_task_0() -> None:
    """Wrong parameters in a table: nothing is lost, and the other queries are not concerned."""
    table = table_of(query(7, json.dumps({"grouping": "partial_key", "best": 5})), query(8))
    assert list(planned(table)) == [8]
    nodes = dispatch({1: [entry("5-0", *range(40))]}, table, 2, {}).envelopes
    extras = [of_node[0].extras for of_node in nodes]
    assert [len(item["task of 7"]) for item in extras] == [40, 40]
    assert not any(item["task of 7"].any() for item in extras)
    assert extras[0]["task of 8"].any()


@pytest.mark.parametrize("text", [PARTIAL, SHUFFLE, grouping_text("key", {"weighted": True})])
def test_no_records_change_no_state(text: str) -> None:
    table = table_of(query(7, text))
    router = KeyRouter(table, planned(table))
    assert len(router.tasks_of(keyed(table), HASHES[:0], TIMES[:0])) == 0
    assert router.report() == {}
