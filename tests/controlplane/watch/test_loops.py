"""Each loop's figure, limit and verdict on what was seen."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.models import Cluster
from controlplane.planners.partitioning.skew_history import QuerySkew
from controlplane.planners.shedding.staleness import LadderDrift, StaleCode, StaleReason
from controlplane.policies.settings import PolicySettings
from controlplane.watch.ladder import ObservedLadder
from controlplane.watch.loops import BY_NAME, Reading
from controlplane.watch.observation import Observation, ObservedNode, Replication

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


class Looked(Observation):
    """What was seen, with a bound that needs no database."""

    def replication(self) -> Replication:
        return Replication(1, NOW, 1.8, 1.25)

    def ladder(self) -> ObservedLadder | None:
        return None


def node(index: int, **changed: Any) -> ObservedNode:
    values = {"capacity": 100.0, "active": True, "tasks": 3, "excluded": False} | changed
    return ObservedNode(index=index, name=f"node {index}", **values)


def sample(second: int, **changed: Any) -> dict[str, Any]:
    return {
        "t": 1000 * second, "rf": 1.3, "p95": 800.0, "loads": [60.0, 50.0], "tasks": [3, 3],
        "waiting": 0, "delivered": 110.0,
    } | changed  # fmt: skip


def looked(kind: type[Looked] = Looked, **changed: Any) -> Looked:
    values: dict[str, Any] = {
        "cluster": Cluster(slug="sf"), "policy": PolicySettings(), "now": NOW,
        "whole_queries": 10, "split_queries": 0,
        "nodes": [node(0), node(1)], "samples": [sample(at) for at in range(20)], "trend": [],
    } | changed  # fmt: skip
    return kind(**values)


def read(name: str, **changed: Any) -> Reading:
    return BY_NAME[name].read(looked(**changed))


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
    for name in ("imbalance", "latency", "replication", "overload"):
        assert not read(name, samples=samples).trouble


def test_a_node_that_is_not_active_does_not_count_for_balance() -> None:
    found = read("imbalance", nodes=[node(0), node(1, active=False)], samples=loads(90.0, 0.0))
    assert found.number == pytest.approx(0.0)


def test_an_excluded_fullest_node_blocks() -> None:
    nodes = [node(0, excluded=True), node(1)]
    assert read("imbalance", nodes=nodes, samples=loads(90.0, 30.0)).blocked == "excluded"
    assert not read("imbalance", nodes=nodes).blocked


def test_replication_is_compared_with_its_bound() -> None:
    """1.5 times a bound of 1.25; below 1.5 the bound need not be known."""
    found = read("replication", samples=[sample(at, rf=1.9) for at in range(5)])
    assert found.number == 1.9
    assert found.limit == pytest.approx(1.875)
    assert found.trouble
    assert not read("replication", samples=[sample(at, rf=1.8) for at in range(5)]).trouble
    assert read("replication").limit == 1.5


def test_split_queries_do_not_count_for_replication() -> None:
    """They are delivered everywhere wherever the others are: only the others' factor counts."""
    found = read("replication", samples=[sample(at, rf=4.0) for at in range(5)], split_queries=3)
    assert (found.number, found.trouble) == (1.8, False)


def test_latency_beyond_the_bound() -> None:
    found = read("latency", samples=[sample(at, p95=12_000.0) for at in range(5)])
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
    trend = [sample(10 * at, loads=[20.0 + 20 * at / 6, 50.0]) for at in range(13)]
    found = read("overload", trend=trend)
    assert found.trouble is True
    assert found.number == pytest.approx(1.6)
    assert found.text == "node 0 is forecast at 160 % of its capacity in 5 min"
    level = [sample(10 * at, loads=[60.0 + at % 2, 50.0]) for at in range(13)]
    assert not read("overload", trend=level).trouble


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
    for name in ("imbalance", "replication", "latency", "overload"):
        assert read(name, samples=[]).number is None


def test_the_most_skewed_query_counts() -> None:
    assert read("skew").calm == "within"
    assert read("skew", split_queries=2).number is None
    skews = [QuerySkew(1, "q", 0.1), QuerySkew(2, "r", 0.25)]
    found = read("skew", split_queries=2, skews=skews)
    assert (found.number, found.limit, found.trouble) == (0.25, 0.2, True)
    assert found.text.startswith("Skew of r ")
    near = read("skew", split_queries=1, skews=[QuerySkew(1, "q", 0.19)])
    assert (near.trouble, near.near) == (False, True)
    policy = PolicySettings(watch_skew=0.3)
    assert not read("skew", split_queries=2, skews=skews, policy=policy).trouble


def ladder_reading(
    *reasons: StaleCode, stale_s: float = 0.0, is_trouble: bool = False, **changes: float
) -> Reading:
    drift = LadderDrift(
        0.5, changes.get("mix", 0.0), 0.0,
        tuple(StaleReason(code, f"{code} changed") for code in reasons),
        changes.get("queries", 0.0),
    )  # fmt: skip
    ladder = ObservedLadder(drift, stale_s, is_trouble)

    class Armed(Looked):
        def ladder(self) -> ObservedLadder:
            return ladder

    return BY_NAME["ladder"].read(looked(kind=Armed))


def test_a_ladder_is_stale_for_some_time_before_a_plan() -> None:
    fresh = ladder_reading(mix=0.05)
    assert (fresh.number, fresh.limit, fresh.trouble, fresh.near) == (0.05, 0.1, False, False)
    assert fresh.calm == "within"
    assert ladder_reading(mix=0.095).near
    young = ladder_reading(StaleCode.RATES, mix=0.4, stale_s=299.0)
    assert (young.trouble, young.calm, young.number) == (False, "stale", 0.4)
    assert young.text == "The armed ladder is stale: rates changed"
    assert ladder_reading(StaleCode.RATES, mix=0.4, stale_s=300.0).trouble
    # A plan was requested: it is stale until it is armed.
    assert ladder_reading(StaleCode.RATES, mix=0.4, is_trouble=True).trouble


def test_single_queries_make_no_ladder_stale() -> None:
    few = ladder_reading(StaleCode.QUERIES, queries=0.02, is_trouble=True)
    assert (few.trouble, few.number, few.calm) == (False, 0.02, "within")
    assert ladder_reading(StaleCode.QUERIES, queries=0.2, is_trouble=True).trouble
    both = ladder_reading(StaleCode.QUERIES, StaleCode.WEIGHTS, queries=0.02, is_trouble=True)
    assert both.trouble
    assert both.text == "The armed ladder is stale: weights changed"


def test_without_an_armed_ladder_there_is_nothing_to_compute() -> None:
    reading = read("ladder")
    assert (reading.trouble, reading.near, reading.number) == (False, False, 0.0)


def test_excluded_skewed_queries_block_only_together() -> None:
    skews = [QuerySkew(1, "q", 0.22), QuerySkew(2, "r", 0.25)]
    some = read("skew", split_queries=2, skews=skews, excluded_queries=frozenset({"r"}))
    assert (some.trouble, some.blocked) == (True, "")
    names = frozenset({"q", "r"})
    every = read("skew", split_queries=2, skews=skews, excluded_queries=names)
    assert every.blocked == "excluded"
    assert read("skew", split_queries=2, skews=skews[:0], excluded_queries=names).blocked == ""
