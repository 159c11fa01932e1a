"""Explanations of nodes, streams, queries, measures and decisions from stored rows."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.alerts.measures import AlertMeasure
from controlplane.errors import Invalid, NotFound
from controlplane.explain import Cause, CauseCode, explain, likely_causes, parse_subject
from controlplane.explain.change import ChangeKind
from controlplane.explain.remedies import waiting_plans
from controlplane.explain.values import RemedyReason
from controlplane.models import Cluster, Decision, Node, Query, RoutingVersion, SeriesPeriod, Task
from controlplane.policies.grades import Grade
from controlplane.proposals import requests
from controlplane.topology import nodes
from tests.support.alerting import firing
from tests.support.cluster import placed, placed_split, stream_id
from tests.support.execution import execution_row
from tests.support.explaining import OverTime, record_past, steps
from tests.support.key_samples import sampled
from tests.support.watching import reachable


def node_of(query: Query) -> Node:
    return Task.objects.get(query=query, index=0).node


def likely(sf: Cluster, measure: str, now: datetime) -> Cause | None:
    """Return the likely cause of an exceeded limit of a measure."""
    ranked = likely_causes(sf, [measure], now=now)
    return ranked[0].cause if ranked else None


def one_query(operator: Actor, sf: Cluster) -> tuple[Query, Node]:
    (query,) = placed(operator, sf, {"q": ["s0", "s1"]})
    RoutingVersion.objects.filter(cluster=sf).update(created_at=timezone.now() - timedelta(hours=2))
    sf.refresh_from_db()
    return query, node_of(query)


def even(sf: Cluster, node: Node, load: OverTime) -> list[OverTime]:
    return [load if index == node.index else steps(100, 100, 1) for index in range(sf.slots)]


def test_a_stream_that_rose_is_the_cause_and_the_largest_contribution(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    _, node = one_query(operator, sf)
    rose, flat = stream_id(sf, "s0"), stream_id(sf, "s1")
    record_past(
        sf, now, even(sf, node, steps(150, 650, 8)),
        {rose: steps(100, 600, 8), flat: steps(50, 50, 8)}, arrived=100.0,
    )  # fmt: skip
    cause = explain(sf, parse_subject(f"node:{node.index}"), now).cause
    assert cause is not None
    assert (cause.code, cause.stream, cause.node) == (CauseCode.STREAM_ROSE, rose, node.index)
    assert (cause.before, cause.after) == pytest.approx((100, 600), rel=0.05)
    assert cause.share == pytest.approx(1, abs=0.05)
    assert cause.time is not None
    assert abs(cause.time - (now - timedelta(minutes=8))) < timedelta(seconds=40)

    found = explain(sf, parse_subject(f"node:{node.index}"), now)
    assert (found.finding.grade, found.is_live) == (Grade.BAD, True)
    assert found.finding.value == pytest.approx(650, rel=0.01)
    assert found.finding.since is not None
    assert abs(found.finding.since - (now - timedelta(minutes=8))) < timedelta(seconds=30)
    assert found.streams is not None
    first = found.streams.rows[0]
    assert (first.id, first.is_large, found.streams.is_change) == (rose, True, True)
    assert first.change == pytest.approx(500, rel=0.05)
    assert [change.kind for change in found.changes] == [ChangeKind.RATE, ChangeKind.EXCEEDED]
    assert [remedy.reason for remedy in found.remedies] == [
        RemedyReason.ROOM_ELSEWHERE, RemedyReason.ALL_FULL,
    ]  # fmt: skip
    assert found.series is not None
    assert found.series.baseline == pytest.approx(150, rel=0.05)
    # Once there is an alert, its onset is that of the explanation, too.
    since = now - timedelta(minutes=7)
    firing(sf, "node_load", node=node.index, since=since)
    firing(sf, since=now - timedelta(minutes=6))
    assert explain(sf, parse_subject(f"node:{node.index}"), now).finding.since == since

    before = explain(sf, parse_subject(f"node:{node.index}@{ms(now - timedelta(minutes=12))}"), now)
    assert (before.finding.grade, before.finding.since, before.is_live) == (Grade.GOOD, None, False)


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def test_a_lowered_capacity_is_the_cause_of_a_slow_node(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    _, node = one_query(operator, sf)
    streams = {stream_id(sf, name): steps(100, 100, 1) for name in ("s0", "s1")}
    record_past(sf, now, even(sf, node, steps(200, 200, 1)), streams)
    nodes.configure(operator, node, "maintenance", capacity=120, emulated=True)
    later = timezone.now()
    cause = likely(sf, "latency_p95", later)
    assert cause is not None
    assert (cause.code, cause.node) == (CauseCode.CAPACITY_LOWERED, node.index)
    assert (cause.before, cause.after, cause.actor) == (500, 120, operator.name)
    found = explain(sf, parse_subject("measure:latency_p95"), later)
    assert found.cause == cause
    (change,) = [row for row in found.changes if row.kind is ChangeKind.CAPACITY]
    assert change.text == f"Capacity set from 500 to 120 deliveries/s by {operator.name}."
    assert (change.before, change.after) == (500, 120)
    found = explain(sf, parse_subject(f"node:{node.index}"), later)
    assert found.finding.since == change.time, "not before the limit was lowered"


def test_a_slow_node_without_a_past_is_compared_with_the_others(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    _, node = one_query(operator, sf)
    busy = [0.8 if index == node.index else 0.02 for index in range(sf.slots)]
    record_past(sf, now, even(sf, node, steps(100, 100, 1)), {}, p95=12_000.0, busy=busy)
    SeriesPeriod.objects.filter(
        cluster=sf, scope__lte=SeriesPeriod.Scope.SPLIT, t__lt=now - timedelta(minutes=5)
    ).delete()
    cause = likely(sf, "latency_p95", now)
    assert cause is not None
    assert (cause.code, cause.node, cause.count) == (CauseCode.SLOW_NODE, node.index, sf.slots - 1)


def test_streams_that_rose_together_fill_all_nodes(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    queries = placed(operator, sf, {f"q{i}": [f"s{i}", f"s{(i + 1) % 6}"] for i in range(6)})
    RoutingVersion.objects.filter(cluster=sf).update(created_at=now - timedelta(hours=2))
    rates = {stream_id(sf, f"s{i}"): steps(60, 400, 6) for i in range(6)}
    record_past(sf, now, [steps(120, 800, 6)] * 4, rates)
    cause = explain(sf, parse_subject(f"node:{node_of(queries[0]).index}"), now).cause
    assert cause is not None
    assert cause.code in (CauseCode.STREAM_ROSE, CauseCode.STREAMS_ROSE)
    assert cause.full_share == pytest.approx(1.6, rel=0.01)
    found = explain(sf, parse_subject(f"node:{node_of(queries[0]).index}"), now)
    assert [remedy.reason for remedy in found.remedies] == [RemedyReason.ALL_FULL]


def test_many_streams_rose_although_no_single_rise_is_more_than_its_noise(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    """Five of six streams have more records; the other does not count."""
    names = [f"s{i}" for i in range(6)]
    (query,) = placed(operator, sf, {"q": names})
    RoutingVersion.objects.filter(cluster=sf).update(created_at=now - timedelta(hours=2))
    sf.refresh_from_db()
    node, draw = node_of(query), np.random.default_rng(1)

    def noisy(rate: OverTime) -> OverTime:
        return lambda ago: max(0.0, rate(ago) + 36 * float(draw.normal()))

    rates = {stream_id(sf, name): noisy(steps(40, 60, 6)) for name in names[1:]}
    rates[stream_id(sf, "s0")] = steps(100, 100, 6)
    record_past(sf, now, even(sf, node, steps(300, 400, 6)), rates)
    cause = explain(sf, parse_subject(f"node:{node.index}"), now).cause
    assert cause is not None
    assert cause.code is CauseCode.STREAMS_ROSE
    assert cause.count in (4, 5)
    assert cause.before == pytest.approx(40 * cause.count, rel=0.1)
    assert cause.after == pytest.approx(60 * cause.count, rel=0.2)
    assert cause.time is not None
    assert abs(cause.time - (now - timedelta(minutes=6))) < timedelta(seconds=60)


def test_a_key_that_a_new_query_samples_is_the_cause_on_a_node_that_reads_its_stream(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    """A key cannot have had more records than its stream had: no earlier sample is needed."""
    _, node = one_query(operator, sf)
    query = placed_split(operator, sf, key_grouping="key", name="by-car")
    hot, flat = stream_id(sf, "s0"), stream_id(sf, "s1")
    sample_hot_key(sf, query, now, {"taxi": 300, "car 1": 50, "car 2": 50}, hot)
    record_past(
        sf, now, even(sf, node, steps(60, 360, 5)), {hot: steps(10, 310, 5), flat: steps(50, 50, 5)}
    )
    found = explain(sf, parse_subject(f"node:{node.index}"), now).cause
    assert found is not None
    assert (found.code, found.key, found.stream) == (CauseCode.HOT_KEY, "taxi", hot)
    assert found.key_share == pytest.approx(0.75)
    assert (found.before, found.after) == pytest.approx((10, 300), rel=0.05)
    assert "Key taxi of stream s0 (query by-car) has 300 records/s" in found.text
    assert "75 % of the query's records" in found.text


def test_a_key_that_was_as_frequent_before_is_not_the_cause(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    """Its stream has twice as many records, and it half of them, as ever."""
    _, node = one_query(operator, sf)
    query = placed_split(operator, sf, key_grouping="key", name="by-car")
    rose, flat = stream_id(sf, "s0"), stream_id(sf, "s1")
    sample_hot_key(sf, query, now, {"taxi": 200, "car 1": 100, "car 2": 100}, rose)
    record_past(
        sf, now, even(sf, node, steps(250, 450, 5)),
        {rose: steps(200, 400, 5), flat: steps(50, 50, 5)},
    )  # fmt: skip
    found = explain(sf, parse_subject(f"node:{node.index}"), now).cause
    assert found is not None
    assert (found.code, found.stream) == (CauseCode.STREAM_ROSE, rose)


def sample_hot_key(
    sf: Cluster, query: Query, now: datetime, keys: dict[str, int], stream: int
) -> None:
    """Store samples of a query in which all keys are in one stream, with their counts per s."""
    RoutingVersion.objects.filter(cluster=sf).update(created_at=now - timedelta(hours=2))
    Cluster.objects.filter(pk=sf.pk).update(last_batch=ms(now) // 1000)
    sf.refresh_from_db()
    total = float(sum(keys.values()))
    sampled(query, now, keys, records_per_s=total, streams=dict.fromkeys(keys, stream))


def test_a_waiting_plan_states_how_many_of_its_actions_involve_the_node(sf: Cluster) -> None:
    proposal = execution_row(sf).proposal
    proposal.state, proposal.actions = "ready", [[1, 0, 0, 1], [2, 0, 2, 1]]
    proposal.save()
    headings = [plan.heading for node in (0, 1) for plan in waiting_plans(sf, "node", node)]
    assert [heading.split(", ")[1] for heading in headings] == [
        "1 of 2 actions involve node 0", "2 actions",
    ]  # fmt: skip
    assert not waiting_plans(sf, "node", 3)


def test_a_plan_that_moved_queries_is_the_cause(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    query, node = one_query(operator, sf)
    proposal = requests.request(operator, sf, "mms", {"nu": 1.0})
    ops = [{"op": "move_tasks", "query": query.pk, "moves": [[node.index, 0, 1]]}]
    version = RoutingVersion.objects.create(
        cluster=sf, version=99, ops=ops, reason="step", actor="approver", proposal=proposal
    )
    moment = now - timedelta(minutes=8)
    RoutingVersion.objects.filter(pk=version.pk).update(created_at=moment)
    rates = {stream_id(sf, name): steps(300, 300, 1) for name in ("s0", "s1")}
    record_past(sf, now, even(sf, node, steps(10, 600, 8)), rates)
    found = explain(sf, parse_subject("query:q"), now)
    assert found.cause is not None
    assert (found.cause.code, found.cause.proposal) == (CauseCode.PLAN_MOVED, proposal.pk)
    (change,) = [row for row in found.changes if row.kind is ChangeKind.PLAN]
    assert (change.proposal, change.arrived, change.time) == (proposal.pk, 1, moment)


def test_traffic_rises_with_a_placement(operator: Actor, sf: Cluster, now: datetime) -> None:
    _, node = one_query(operator, sf)
    moment = now - timedelta(minutes=6)
    ops = [{"op": "add_query", "query": 7, "node": node.index}]
    version = RoutingVersion.objects.create(cluster=sf, version=99, ops=ops, actor="x")
    RoutingVersion.objects.filter(pk=version.pk).update(created_at=moment)
    record_past(sf, now, even(sf, node, steps(100, 100, 1)), {}, rf=steps(1.2, 1.8, 6))
    cause = likely(sf, "replication_factor", now)
    assert cause is not None
    assert (cause.code, cause.count) == (CauseCode.QUERIES_PLACED, 1)
    assert likely(sf, "latency_p95", now) is None, "nothing else has changed"


def test_a_limit_that_no_plan_reaches_is_too_low(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    _, node = one_query(operator, sf)
    record_past(sf, now, even(sf, node, steps(100, 100, 1)), {}, imbalance=0.41)
    reachable(sf, 1.5, imbalance=0.1)
    assert likely(sf, "imbalance", now) is None
    reachable(sf, 1.5, imbalance=0.35)
    cause = likely(sf, "imbalance", now)
    assert cause is not None
    assert (cause.code, cause.measure) == (CauseCode.LIMIT_TOO_LOW, "imbalance")
    assert (cause.before, cause.after) == pytest.approx((0.2, 0.35))


def test_streams_and_decisions_are_explained(operator: Actor, sf: Cluster, now: datetime) -> None:
    _, node = one_query(operator, sf)
    rose = stream_id(sf, "s0")
    record_past(sf, now, even(sf, node, steps(100, 600, 8)), {rose: steps(100, 600, 8)})
    found = explain(sf, parse_subject("stream:s0"), now)
    assert found.cause is not None
    assert found.cause.stream == rose
    assert found.finding.value == pytest.approx(600, rel=0.05)
    assert found.headline.startswith("s0 receives ")
    decision = Decision.objects.create(
        cluster=sf, loop="overload", code="asked", number=1.2, limit=1.0, unit="share",
        text="node 0 is loaded to 120 % of its capacity", first_at=now, last_at=now,
    )  # fmt: skip
    found = explain(sf, parse_subject(f"decision:{decision.pk}"), now)
    assert found.finding.measure == AlertMeasure.LOAD
    assert found.finding.value == pytest.approx(1.2, rel=0.01)
    assert ChangeKind.DECISION in [change.kind for change in found.changes]


@pytest.mark.parametrize("text", ["node:5", "node:5@1700000000000", "stream:a@b", "query:x y",
                                  "measure:imbalance@1700000000000", "decision:7"])  # fmt: skip
def test_a_subject_is_a_text(text: str) -> None:
    assert str(parse_subject(text)) == text


@pytest.mark.parametrize(
    "text", ["", "node", "node:", "node:x", "node:²", "host:1", "measure:x", "node:1@9" + "9" * 30]
)
def test_other_texts_are_no_subjects(text: str) -> None:
    with pytest.raises(Invalid):
        parse_subject(text)


def test_a_cluster_without_data_has_no_cause(operator: Actor, sf: Cluster, now: datetime) -> None:
    assert explain(sf, parse_subject(f"node:{0}"), now).cause is None
    found = explain(sf, parse_subject("node:0"), now)
    assert (found.finding.value, found.finding.grade) == (None, Grade.UNKNOWN)
    for text in ("node:99", "stream:x", "query:x", "decision:1"):
        with pytest.raises(NotFound):
            explain(sf, parse_subject(text), now)
