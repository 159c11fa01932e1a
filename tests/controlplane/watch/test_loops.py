"""Each loop's figure, limit and verdict on what was seen."""

from typing import Any

import pytest

from controlplane.watch.loops import loop_named
from controlplane.watch.reading import LoopReading
from tests.support.watching import looked, node, sample


def read(name: str, **changed: Any) -> LoopReading:
    loop = loop_named(name)
    assert loop is not None
    return loop.read(looked(**changed))


def loads(*values: float, count: int = 20) -> list[dict[str, Any]]:
    return [sample(at, loads=list(values)) for at in range(count)]


def test_imbalance_is_the_fullest_node_above_the_mean() -> None:
    calm = read("imbalance")
    assert calm.number == pytest.approx(0.05)
    assert (calm.limit, calm.trouble) == (0.2, False)
    assert calm.calm == "balanced"
    found = read("imbalance", samples=loads(90.0, 30.0))
    assert found.trouble is True
    assert found.number == pytest.approx(0.3)
    near = read("imbalance", samples=loads(78.0, 40.0))
    assert (near.trouble, near.near) == (False, True)


def test_one_slow_batch_is_no_trouble() -> None:
    """The figures are medians over a minute."""
    samples = [*loads(60.0, 50.0), sample(20, loads=[300.0, 0.0], p95=60_000.0, rf=9.0)]
    for name in ("imbalance", "latency", "overload"):
        assert not read(name, samples=samples).trouble


def test_a_node_that_is_not_active_does_not_count_for_balance() -> None:
    found = read("imbalance", nodes=[node(0), node(1, active=False)], samples=loads(90.0, 0.0))
    assert found.number == pytest.approx(0.0)


def test_an_excluded_fullest_node_blocks() -> None:
    nodes = [node(0, excluded=True), node(1)]
    assert read("imbalance", nodes=nodes, samples=loads(90.0, 30.0)).blocked == "excluded"
    assert not read("imbalance", nodes=nodes).blocked


def test_latency_beyond_the_bound() -> None:
    found = read("latency", samples=[sample(at, p95=12_000.0) for at in range(20)])
    assert found.number == 12_000.0
    assert (found.limit, found.trouble) == (10_000.0, True)


def test_an_overloaded_node() -> None:
    found = read("overload", samples=loads(110.0, 50.0))
    assert found.number == pytest.approx(1.1)
    assert (found.limit, found.trouble) == (1.0, True)
    assert "node 0 is loaded to 110 %" in found.text


def test_where_all_nodes_are_full_no_move_helps() -> None:
    found = read("overload", samples=loads(110.0, 105.0))
    assert found.blocked == "no_planner"
    assert "all nodes together have 108 % load" in found.text


def test_records_that_queue_up_are_an_overload() -> None:
    """Though no node is loaded beyond its capacity: what it cannot take does not arrive."""
    samples = [sample(at, waiting=100 * at) for at in range(20)]
    found = read("overload", samples=samples)
    assert found.trouble is True
    assert found.number == pytest.approx(100.0)
    assert "1,900 records wait at nodes, 100 more each second" in found.text
    few = [sample(at, waiting=at) for at in range(20)]
    assert not read("overload", samples=few).trouble
    falling = [sample(at, waiting=100 * (40 - at)) for at in range(20)]
    assert not read("overload", samples=falling).trouble


def test_an_overload_is_forecast_with_its_horizon() -> None:
    """20 records/s more each minute: 60 now, 160 in five minutes."""
    risen = [sample(at, loads=[20.0 + at / 3, 50.0]) for at in range(121)]
    found = read("overload", samples=risen)
    assert found.trouble is True
    assert found.number == pytest.approx(1.6)
    assert found.text == "node 0 is forecast at 160 % of its capacity in 5 min"
    level = [sample(at, loads=[60.0 + at % 2, 50.0]) for at in range(121)]
    assert not read("overload", samples=level).trouble


def test_a_node_that_is_not_active_and_hosts_tasks_is_lost() -> None:
    found = read("node lost", nodes=[node(0), node(1, active=False)])
    assert (found.number, found.trouble, found.blocked) == (1, True, "")
    assert found.text == "node 1 is not active and still hosts tasks"
    assert not read("node lost", nodes=[node(0), node(1, active=False, tasks=0)]).trouble


def test_a_node_that_says_nothing_is_for_a_person() -> None:
    """A plan cannot know whether it is gone."""
    samples = [sample(at, tasks=[3, 0]) for at in range(5)]
    assert read("node lost", samples=samples).blocked == "silent"
    assert not read("node lost", samples=samples[:2]).trouble, "too few samples to say so"
    assert not read("node lost").trouble


def test_an_empty_node_is_added_where_there_is_something_to_spread() -> None:
    found = read("node added", nodes=[node(0, tasks=9), node(1, tasks=0)])
    assert (found.number, found.trouble) == (1, True)
    assert found.text == "node 1 is active and hosts no task"
    assert not read("node added", nodes=[node(0, tasks=1), node(1, tasks=0)]).trouble
    assert not read("node added").trouble


def test_nothing_measured_is_nothing_known() -> None:
    for name in ("imbalance", "latency", "overload"):
        assert read(name, samples=[]).number is None
