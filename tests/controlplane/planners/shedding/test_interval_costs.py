"""What the intervals of a ladder cost each query."""

from datetime import datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query, SheddingInterval
from controlplane.planners.shedding import interval_costs as costs_module
from controlplane.planners.shedding.interval_costs import IntervalCost, interval_costs
from controlplane.queries.spec import QuerySpec
from controlplane.topology import placement, queries
from controlplane.wire.query_text import QueryText

pytestmark = pytest.mark.django_db(transaction=True)


def interval(cluster: Cluster, now: datetime, **dropped: int) -> SheddingInterval:
    """Store an interval of the next minute; s0 has 1,000 records, s1 200, s2 300.

    `dropped`: by the name of a query, or of a stream for its input edge.
    """
    streams = dict(cluster.streams.values_list("name", "id"))
    read = {"s0": 1000, "s1": 200, "s2": 300}
    ids = dict(Query.objects.values_list("name", "id"))
    of = {"low": "s0", "high": "s0", "both": "s1"}
    return SheddingInterval.objects.create(
        cluster=cluster, rung=1, position=0.7, started_at=now,
        ended_at=now + timedelta(minutes=1), read=1500, dropped=sum(dropped.values()),
        by_edge=[[streams[of.get(name, name)], ids.get(name, 0), n]
                 for name, n in dropped.items()],
        by_stream=[[streams[name], n] for name, n in read.items()],
    )  # fmt: skip


def cost_of(cluster: Cluster, row: SheddingInterval) -> IntervalCost:
    (cost,) = interval_costs(cluster, [row])
    return cost


def test_a_query_loses_what_its_edges_and_inputs_drop(busy: Cluster, now: datetime) -> None:
    # Weights 0.1 and 1 on s0, 1 on s1 and s2.
    cost = cost_of(busy, interval(busy, now, s0=100, low=300, both=50))
    assert [(query.name, query.arrived, query.dropped) for query in cost.queries] == [
        ("low", 1000, 400), ("both", 500, 50), ("high", 1000, 100),
    ]  # fmt: skip
    assert [query.kept for query in cost.queries] == pytest.approx([0.6, 0.9, 0.9])
    assert cost.lossy_queries == 3
    assert cost.quality_lost == pytest.approx((0.1 * 400 + 100 + 50) / (0.1 * 1000 + 1000 + 500))
    assert cost.seconds == 60


def test_queries_without_a_loss_are_not_listed(busy: Cluster, now: datetime) -> None:
    cost = cost_of(busy, interval(busy, now, low=1000))
    assert [(query.name, query.kept) for query in cost.queries] == [("low", 0.0)]


def test_only_queries_that_ran_then_count(busy: Cluster, now: datetime) -> None:
    row = interval(busy, now, s0=100)
    Query.objects.filter(name="low").update(ended_at=now - timedelta(minutes=5), state="ended")
    Query.objects.filter(name="high").update(ended_at=now + timedelta(seconds=5), state="ended")
    assert [query.name for query in cost_of(busy, row).queries] == ["high"]
    Query.objects.filter(name="high").update(placed_at=row.ended_at, ended_at=None)
    assert cost_of(busy, row).queries == ()


def test_the_kept_part_of_a_join_is_the_mean_of_its_sides(
    operator: Actor, busy: Cluster, now: datetime
) -> None:
    text = QueryText({"n": "count(*)"}, window_s=5, on=(("car", "car"),))
    queries.submit(operator, busy, QuerySpec("pairs", ("s1",), text, right=("s2",)))
    placement.place_pending(busy.pk)
    row = interval(busy, now + timedelta(minutes=1), s2=150)
    pairs = next(query for query in cost_of(busy, row).queries if query.name == "pairs")
    assert (pairs.arrived, pairs.dropped) == (500, 150)
    assert pairs.kept == pytest.approx(0.75)


def test_without_records_by_stream_the_cost_is_not_known(busy: Cluster, now: datetime) -> None:
    row = interval(busy, now, low=10)
    row.by_stream = []
    assert cost_of(busy, row) == IntervalCost(row)


def test_the_oldest_intervals_have_no_cost_if_there_are_too_many(
    busy: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [interval(busy, now - timedelta(minutes=m), low=10) for m in (0, 5)]
    Query.objects.update(placed_at=now - timedelta(hours=1))
    monkeypatch.setattr(costs_module, "MOST_PAIRS", 5)
    newest, oldest = interval_costs(busy, rows)
    assert newest.quality_lost is not None
    assert oldest == IntervalCost(rows[1])
