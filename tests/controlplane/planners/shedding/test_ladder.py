"""Ladders of clusters: their costs and parts against the linear program, their drop locations."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.shedding.lp import Lp
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import first_full_factor
from controlplane.errors import Conflict
from controlplane.planners.shedding.inputs import SheddingInput
from controlplane.planners.shedding.ladder import compute_ladder, input_factor
from controlplane.planners.shedding.problem import network_of
from controlplane.planners.shedding.quality import kept_by, parts_at
from controlplane.plans.ladder_settings import SheddingSettings
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.ladder import Ladder, ResourceKind
from tests.support.shedding import SheddingCluster, loads_of, part_of

CAPACITY = pytest.approx(1.0)


def ladder_of(cluster: SheddingCluster) -> Ladder:
    ladder = compute_ladder(cluster.snapshot())
    assert ladder is not None
    return ladder


@st.composite
def clusters(draw: st.DrawFn) -> SheddingCluster:
    """Draw a cluster of measured and emulated nodes with whole and split queries and joins."""
    rate, seconds = st.floats(1, 100), st.floats(0.001, 0.02)
    cluster = SheddingCluster(
        {stream: draw(rate) for stream in range(1, 5)},
        [draw(seconds) for _ in range(3)],
        frozenset(draw(st.sets(st.integers(0, 2)))),
        split_seconds=draw(st.none() | seconds),
        merge_s=draw(st.none() | seconds),
        partials_per_record=draw(st.none() | st.floats(0.01, 0.5)),
    )
    part = draw(st.floats(0.01, 0.99))
    cluster.shares = {stream: [(0, part), (1, 1 - part)]
                      for stream in draw(st.sets(st.integers(1, 4)))}  # fmt: skip
    for query in range(1, draw(st.integers(1, 6)) + 1):
        streams = sorted(draw(st.sets(st.integers(1, 4), min_size=1, max_size=3)))
        nodes = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
        joins = len(streams) > 1 and draw(st.booleans())
        cluster.add(
            query, streams, nodes, weight=draw(st.floats(0, 5)),
            right=streams[1:] if joins else (),
            work=[draw(rate) for _ in nodes], aggregators=[0] if len(nodes) > 1 else (),
        )  # fmt: skip
    return cluster


@given(clusters())
@settings(max_examples=30, deadline=None)
def test_every_rung_keeps_the_loads_within_the_limit(cluster: SheddingCluster) -> None:
    """By the costs that the data plane gets, which are not those of the network."""
    snapshot = cluster.snapshot()
    network, ladder = network_of(snapshot), compute_ladder(snapshot)
    full = first_full_factor(network.problem.model, network.problem.vector)
    assert input_factor(network) == pytest.approx(1 / full)
    if ladder is None:
        return
    at_limit = {stream: full * rate for stream, rate in cluster.rates.items()}
    assert max(loads_of(ladder, {}, at_limit).values()) == CAPACITY
    for rung in ladder.rungs:
        parts = {(kept.stream, kept.query): kept.part for kept in rung.kept}
        rates = {stream: rung.factor * rate for stream, rate in at_limit.items()}
        for load in loads_of(ladder, parts, rates).values():
            # A delivery is charged to the input edge if no query keeps the most on all rungs.
            limit = 1.0 + 1e-4 if not cluster.emulated else 1.5
            assert load <= limit
        for stream, query in parts:
            assert part_of(parts, stream, query) <= part_of(parts, stream, INPUT) + 1e-9


@given(clusters(), st.floats(1.05, 3.9))
@settings(max_examples=25, deadline=None)
def test_positions_between_rungs_keep_the_optimal_value(
    cluster: SheddingCluster, factor: float
) -> None:
    cluster = replace(cluster, settings=SheddingSettings(rungs=32))
    snapshot = cluster.snapshot()
    ladder = compute_ladder(snapshot)
    if ladder is None:
        return
    network = network_of(snapshot)
    full = first_full_factor(network.problem.model, network.problem.vector)
    rates = {name: factor * full * rate for name, rate in network.problem.rates.items()}
    best = Lp().solve(SheddingProblem(network.problem.network, rates)).outcome.value
    given_ = snapshot.input(SheddingInput)
    assert given_ is not None
    scaled = {stream: factor * full * rate for stream, rate in given_.rates.items()}
    kept = kept_by(
        parts_at(ladder, compiled_ladder(ladder).position_of(factor)), given_.queries, scaled
    )
    whole = sum(
        query.weight * scaled[stream] for query in given_.queries for stream in query.streams
    )
    assert whole * (1 - kept.quality_lost) == pytest.approx(best, rel=2e-3, abs=1e-6)


def test_drop_locations_are_the_edges_of_the_data_plane() -> None:
    """A stream with one query has its input edge only; a query's nodes are not locations."""
    cluster = SheddingCluster({1: 50.0, 2: 50.0}, [0.02, 0.02])
    cluster.add(1, [1], [0, 1], work=[30.0, 20.0]).add(2, [2], [0]).add(3, [2], [0], weight=0.1)
    network = network_of(cluster.snapshot())
    assert set(network.problem.network.locations) == {
        "stream 1", "stream 2", "split of 2->query 2", "split of 2->query 3",
    }  # fmt: skip
    assert network.locations[1, 1] == network.locations[1, INPUT] == "stream 1"
    edges = ladder_of(cluster).edges
    assert edges <= {(1, INPUT), (2, INPUT), (2, 2), (2, 3)}
    # The cheap query of stream 2 loses its records first.
    assert (2, 3) in edges


def test_split_nodes_have_the_work_of_the_partitions_that_they_read() -> None:
    cluster = SheddingCluster({1: 40.0, 2: 10.0}, [0.001], split_seconds=0.02,
                              shares={1: [(0, 0.25), (1, 0.75)]}).add(1, [1, 2], [0])  # fmt: skip
    ladder = ladder_of(cluster)
    costs = {(cost.stream, cost.number): cost.seconds
             for cost in ladder.costs if cost.kind is ResourceKind.SPLIT}  # fmt: skip
    assert costs == pytest.approx({(1, 0): 0.005, (1, 1): 0.015, (2, 0): 0.02})
    every = SheddingCluster({1: 40.0, 2: 10.0}, [0.001], split_seconds=0.02).add(1, [1, 2], [0])
    assert {cost.number for cost in ladder_of(every).costs if cost.kind is ResourceKind.SPLIT} == {
        0, 1,
    }  # fmt: skip


def test_queries_with_one_computation_keep_the_same_records() -> None:
    cluster = SheddingCluster({1: 100.0}, [0.02])
    cluster.add(1, [1], [0]).add(2, [1], [0], floor=0.5, shared=1).add(3, [1], [0], weight=9.0)
    ladder = ladder_of(cluster)
    for rung in ladder.rungs:
        parts = {(kept.stream, kept.query): kept.part for kept in rung.kept}
        assert parts[1, 1] == parts[1, 2] >= 0.5
    # Computed once: the two groups share the node's time per record.
    costs = {cost.query: cost.seconds for cost in ladder.costs}
    assert costs == {1: pytest.approx(0.01), 3: pytest.approx(0.01)}


def test_a_record_is_delivered_once_to_an_emulated_node() -> None:
    cluster = SheddingCluster({1: 200.0}, [0.01], frozenset({0}))
    cluster.add(1, [1], [0]).add(2, [1], [0], weight=3.0)
    ladder = ladder_of(cluster)
    assert [cost.seconds for cost in ladder.costs] == [0.01]
    # Nothing is won by dropping for one of the queries.
    assert ladder.edges == {(1, INPUT)}
    last = ladder.rungs[-1]
    assert last.kept[0].part == pytest.approx(1 / last.factor)


def test_floors_end_the_ladder() -> None:
    cluster = SheddingCluster({1: 100.0}, [0.02]).add(1, [1], [0], floor=0.5)
    ladder = ladder_of(cluster)
    assert ladder.rungs[-1].factor == pytest.approx(2.0, rel=1e-4)
    whole = SheddingCluster({1: 100.0}, [0.02]).add(1, [1], [0], floor=1.0)
    assert compute_ladder(whole.snapshot()) is None


@pytest.mark.parametrize("whole", [0.5, 2.0])
def test_a_record_that_a_whole_and_a_split_query_want_is_delivered_once(whole: float) -> None:
    """Two emulated nodes of 100 records/s, each with a whole query beside a split one."""
    cluster = SheddingCluster({1: 200.0}, [0.01, 0.01], frozenset({0, 1}))
    cluster.add(1, [1], [0], weight=whole).add(2, [1], [1], weight=0.1)
    cluster.add(3, [1], [0, 1], work=[3.0, 1.0])
    snapshot = cluster.snapshot()
    ladder, full = ladder_of(cluster), input_factor(network_of(snapshot))
    # Without drops, each record is delivered to both nodes once: for their whole queries.
    assert full == pytest.approx(2.0)
    for rung in ladder.rungs:
        parts = {(kept.stream, kept.query): kept.part for kept in rung.kept}
        first, second, split = (part_of(parts, 1, query) for query in (1, 2, 3))
        rate = 200.0 * rung.factor / full
        loads = [
            rate * 0.01 * ((1 - part) * kept + part * max(kept, split))
            for kept, part in ((first, 0.75), (second, 0.25))
        ]
        assert loads == pytest.approx([1.0, 1.0], rel=1e-3), "both are full, and not more"
        known = loads_of(ladder, parts, {1: rate})
        assert [known[ResourceKind.NODE, node] for node in (0, 1)] == pytest.approx(loads, rel=1e-3)


def test_a_fair_ladder_has_equal_parts_of_all_queries_within_weights_and_floors() -> None:
    """The most throughput would drop the dear queries on stream 2 only."""
    cluster = SheddingCluster({1: 100.0, 2: 100.0, 3: 50.0}, [0.01, 0.02])
    cluster.add(1, [1], [0]).add(2, [1], [0], shared=1).add(3, [2], [1]).add(4, [3], [1])
    cluster.add(5, [3], [0], weight=2.0).add(6, [2], [0], floor=0.45)
    cluster.settings = SheddingSettings(objective="fair", latency_s=10.0)
    ladder = ladder_of(cluster)
    snapshot = cluster.snapshot()
    assert snapshot.input(SheddingInput) is not None
    full = input_factor(network_of(snapshot))
    for factor in (1.1, 1.5, 2.0):
        parts = parts_at(ladder, compiled_ladder(ladder).position_of(factor))
        rates = {stream: factor / full * rate for stream, rate in cluster.rates.items()}
        assert max(loads_of(ladder, parts, rates).values()) <= 1.0 + 1e-6
        kept = kept_by(parts, cluster.queries, cluster.rates).queries
        assert kept[3] == pytest.approx(kept[4], abs=2e-3), "the same node"
        assert kept[1] == kept[2], "computed once"
        assert kept[6] >= 0.45 - 2e-3
        assert kept[5] == pytest.approx(min(1.0, 2 * kept[1]), abs=2e-3), "by weight"


@pytest.mark.parametrize(
    ("cluster", "code", "named"),
    [
        (SheddingCluster({1: 1.0}, [0.1]), "no_query", ""),
        (SheddingCluster({1: None}, [0.1]).add(1, [1], [0]), "no_rates", "s1"),  # type: ignore[dict-item]
        (SheddingCluster({1: 0.0}, [0.1]).add(1, [1], [0]), "no_rates", ""),
        (
            SheddingCluster({1: 5.0}, [None, 0.1], frozenset({1})).add(1, [1], [0]),
            "no_costs",
            "node 0",
        ),
        (SheddingCluster({1: 5.0}, [0.0]).add(1, [1], [0]), "no_costs", ""),
    ],
)
def test_missing_statistics_are_named(cluster: SheddingCluster, code: str, named: str) -> None:
    with pytest.raises(Conflict) as conflict:
        compute_ladder(cluster.snapshot())
    assert conflict.value.code == code
    assert named in str(conflict.value)
