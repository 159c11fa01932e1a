"""Several changes before an exceeded limit, ranked by their shares of the disturbance."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.explain import CauseCode, Explanation, explain, parse_subject
from controlplane.explain.values import TimeRelation
from controlplane.models import AuditEntry, Cluster, Node, Query, RoutingVersion, Task
from controlplane.topology import nodes
from controlplane.wire.routing.drop_rules import DropRule
from tests.support.cluster import placed, stream_id
from tests.support.explaining import OverTime, record_past, steps


def on_one_node(operator: Actor, sf: Cluster, now: datetime) -> Node:
    """Place a query over two streams, hours ago; return its node."""
    (query,) = placed(operator, sf, {"q": ["s0", "s1"]})
    RoutingVersion.objects.filter(cluster=sf).update(created_at=now - timedelta(hours=2))
    sf.refresh_from_db()
    return Task.objects.get(query=query, index=0).node


def loads(sf: Cluster, node: Node, *parts: OverTime) -> list[OverTime]:
    """Return the load of a node as the sum of parts, and a constant one of the others."""
    own: OverTime = lambda ago: sum(part(ago) for part in parts)  # noqa: E731
    return [own if index == node.index else steps(100, 100, 1) for index in range(sf.slots)]


def ranking(sf: Cluster, node: Node, now: datetime) -> Explanation:
    return explain(sf, parse_subject(f"node:{node.index}"), now)


@pytest.mark.parametrize(("large", "small"), [(12, 5), (5, 12)])
def test_two_rises_are_ranked_by_their_size_in_either_order(
    operator: Actor, sf: Cluster, now: datetime, large: int, small: int
) -> None:
    """Three hundred records/s more and a hundred and fifty, one after the other."""
    node = on_one_node(operator, sf, now)
    most, less = steps(100, 400, large), steps(50, 200, small)
    rates = {stream_id(sf, "s0"): most, stream_id(sf, "s1"): less}
    record_past(sf, now, loads(sf, node, most, less), rates)
    found = ranking(sf, node, now)
    first, second = found.ranked
    assert [row.cause.stream_name for row in found.ranked] == ["s0", "s1"]
    assert (first.share, second.share) == pytest.approx((2 / 3, 1 / 3), abs=0.05)
    assert (first.size, second.size) == pytest.approx((300, 150), rel=0.1)
    assert found.cause is not None
    assert (found.cause.stream_name, found.cause.share) == ("s0", first.share)
    # The limit of 500 records/s is exceeded since the later change.
    earlier, later = (first, second) if large > small else (second, first)
    assert (earlier.relation, later.relation) == (TimeRelation.BEFORE, TimeRelation.WITH)
    assert earlier.lead_s == pytest.approx(7 * 60, abs=40)
    assert "7 min before the limit was exceeded" in found.summary


@pytest.mark.parametrize(("placed_ago", "rose_ago"), [(12, 5), (5, 12)])
def test_a_placement_and_a_rise_of_its_stream_share_the_increase(
    operator: Actor, sf: Cluster, now: datetime, placed_ago: int, rose_ago: int
) -> None:
    """A query is placed on an empty node; its stream rises from 200 to 500 before or after."""
    (query,) = placed(operator, sf, {"q": ["s0"]})
    moment = now - timedelta(minutes=placed_ago)
    RoutingVersion.objects.filter(cluster=sf).update(created_at=moment)
    sf.refresh_from_db()
    node = Task.objects.get(query=query, index=0).node
    rate = steps(200, 500, rose_ago)
    on_node: OverTime = lambda ago: 20 + (rate(ago) if ago < placed_ago else 0.0)  # noqa: E731
    record_past(sf, now, loads(sf, node, on_node), {stream_id(sf, "s0"): rate})
    found = {row.cause.code: row for row in ranking(sf, node, now).ranked}
    arrived = found[CauseCode.QUERIES_PLACED]
    if rose_ago < placed_ago:
        rose = found[CauseCode.STREAM_ROSE]
        assert (arrived.size, rose.size) == pytest.approx((200, 300), rel=0.1)
        assert (arrived.share, rose.share) == pytest.approx((0.4, 0.6), abs=0.05)
    else:
        # The rise was elsewhere: the node received the stream when the query was placed.
        assert CauseCode.STREAM_ROSE not in found
        assert arrived.size == pytest.approx(500, rel=0.1)
        assert arrived.share == pytest.approx(1, abs=0.05)


def test_a_lowered_capacity_and_a_rise_share_the_disturbance(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    """The capacity falls to a quarter, the load doubles: the shares are two and one of three."""
    node = on_one_node(operator, sf, now)
    rate = steps(100, 200, 6)
    rates = {stream_id(sf, "s0"): rate, stream_id(sf, "s1"): steps(10, 10, 1)}
    record_past(sf, now, loads(sf, node, rate), rates)
    nodes.configure(operator, node, "maintenance", capacity=125, emulated=True)
    later = timezone.now()
    found = {row.cause.code: row for row in ranking(sf, node, later).ranked}
    assert found[CauseCode.CAPACITY_LOWERED].share == pytest.approx(2 / 3, abs=0.05)
    assert found[CauseCode.STREAM_ROSE].share == pytest.approx(1 / 3, abs=0.05)
    assert found[CauseCode.CAPACITY_LOWERED].size == pytest.approx(-375)


def test_drops_count_with_their_records(operator: Actor, sf: Cluster, now: datetime) -> None:
    node = on_one_node(operator, sf, now)
    stream, moment = stream_id(sf, "s0"), now - timedelta(minutes=6)
    rule = DropRule.of(0.75).to_json()
    op = {"op": "set_drop_rule", "stream": stream, "query": 0, "rule": None}
    RoutingVersion.objects.create(cluster=sf, version=90, ops=[op], reason="by hand")
    RoutingVersion.objects.filter(version=90).update(created_at=moment)
    AuditEntry.objects.create(
        cluster=sf, action="drop.lift", object="s0", before=rule, after={}, actor="op", at=moment
    )
    flat = {stream_id(sf, name): steps(400, 400, 1) for name in ("s0", "s1")}
    record_past(sf, now, loads(sf, node, steps(500, 800, 6)), flat)
    (lifted,) = ranking(sf, node, now).ranked
    assert (lifted.cause.code, lifted.cause.before) == (CauseCode.DROPS_CHANGED, 0.75)
    assert lifted.size == pytest.approx(300, rel=0.02)
    assert lifted.share == pytest.approx(1, abs=0.05)


def test_slow_nodes_and_rises_share_a_latency(operator: Actor, sf: Cluster, now: datetime) -> None:
    """The slow node has three times the latency of the fullest one, whose stream rose."""
    node = on_one_node(operator, sf, now)
    slow = (node.index + 1) % sf.slots
    busy = [0.9 if index == slow else 0.1 for index in range(sf.slots)]
    latency = [12_000.0 if index == slow else 4_000.0 for index in range(sf.slots)]
    rate = steps(100, 600, 6)
    record_past(
        sf, now, loads(sf, node, rate), {stream_id(sf, "s0"): rate}, p95=12_000.0,
        node_p95=latency, busy=lambda ago: busy if ago < 5 else [0.1] * sf.slots,
    )  # fmt: skip
    found = explain(sf, parse_subject("measure:latency_p95"), now)
    first, second = found.ranked
    assert (first.cause.code, first.cause.node) == (CauseCode.SLOW_NODE, slow)
    assert (second.cause.code, second.cause.node) == (CauseCode.STREAM_ROSE, node.index)
    assert (first.share, second.share) == pytest.approx((0.55, 0.45), abs=0.03)
    assert found.cause is not None
    assert found.cause.share == first.share


def test_a_node_without_changes_has_no_ranking(operator: Actor, sf: Cluster, now: datetime) -> None:
    node = on_one_node(operator, sf, now)
    record_past(sf, now, loads(sf, node, steps(200, 200, 1)), {})
    assert ranking(sf, node, now).ranked == []
    assert Query.objects.count() == 1
