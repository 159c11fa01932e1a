"""Tolerances of drift allow their own value; what nobody observes for a minute starts again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.models import Cluster, Node, Proposal, Stream
from controlplane.plans.snapshot import ClusterSnapshot, NodeRow, StreamRow
from controlplane.policies.settings import settings_of
from controlplane.proposals import staleness
from controlplane.proposals.drift import (
    Drift,
    _exceeded,
    delays_start,
    drift_of,
    observe_drift,
    would_exceed,
)
from controlplane.proposals.review import Review
from controlplane.telemetry.arrivals.catching_up import oldest_s
from controlplane.topology.applicability import Obstacle

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
STORED_EVERY, UNSEEN, REVIEW_TIMES = timedelta(seconds=5), timedelta(seconds=60), 40.0
SECOND, INSTANT = timedelta(seconds=1), timedelta(microseconds=1)
POLICY = settings_of(
    {"tolerated_ended": 0.5, "tolerated_new": 1.5, "tolerated_rates": 0.2,
     "tolerated_gain_loss": 0.25, "drift_hold_s": 60}
)  # fmt: skip


def measured(**values: Any) -> Drift:
    none = {"ended": 0, "new": 0, "queries": 4, "rate_change": 0.0}
    return Drift(gone_nodes=[], capacities=[], obstacles={}, **none | values)


@pytest.mark.parametrize(
    ("tolerated", "beyond"),
    [
        ({"ended": 2}, {"ended": 3}),
        ({"new": 6}, {"new": 7}),
        ({"rate_change": 0.2}, {"rate_change": 0.200001}),
        ({"gain_lost": 0.25}, {"gain_lost": 0.250001}),
        ({"gain_lost": None}, {"gain_lost": 1.0}),
    ],
)
def test_a_tolerance_allows_its_own_value(
    tolerated: dict[str, Any], beyond: dict[str, Any]
) -> None:
    assert _exceeded(measured(**tolerated), POLICY) == []
    assert len(_exceeded(measured(**beyond), POLICY)) == 1


@pytest.mark.parametrize(
    ("values", "delays"),
    [
        ({}, False),
        ({"exceeded": ["x"]}, True),
        ({"exceeded": ["x"], "gain_lost": 0.25}, False),
        ({"gain_lost": 0.26}, True),
        ({"exceeded": ["x"], "gain_lost": 0.0, "raised": ["imbalance"]}, True),
    ],
)
def test_a_start_waits_for_the_gain_where_it_is_known(values: dict[str, Any], delays: bool) -> None:
    assert delays_start(measured(**values), POLICY) is delays


def test_a_snapshot_without_queries_tolerates_any() -> None:
    assert _exceeded(measured(queries=0, ended=3, new=3), POLICY) == []


@pytest.mark.parametrize(
    ("values", "stale"),
    [
        ({}, False),
        ({"lasted_s": 61.0}, False),
        ({"exceeded": ["x"], "lasted_s": 59.999}, False),
        ({"exceeded": ["x"], "lasted_s": 60.0}, True),
        ({"exceeded": ["x"], "lasted_s": 0.0, "changed": True}, True),
        ({"changed": True}, False),
    ],
)
def test_drift_is_stale_from_the_time_of_the_policy(values: dict[str, Any], stale: bool) -> None:
    drift = measured(hold_s=60.0, **values)
    assert (drift.stale, drift.to_json()["stale"]) == (stale, stale)


def test_a_drift_is_one_sentence() -> None:
    assert str(measured(ended=1)) == "1 query ended, 0 new, rates changed by 0 %"
    drift = measured(ended=2, exceeded=["a", "b"], rate_change=0.5)
    assert str(drift) == "a; b; 2 queries ended, 0 new, rates changed by 50 %"


def test_measures_are_named_by_their_titles() -> None:
    """One of a planner that is not installed any more has its name."""
    assert would_exceed(["replication_factor", "of_old"]) == (
        "the plan would exceed the limit of the replication factor and of_old"
    )


@pytest.fixture
def proposal(db: None) -> Proposal:
    """A stored proposal for two active nodes, an idle node, and streams of 10 and 30 records/s."""
    cluster = Cluster.objects.create(slug="sf", name="SF", slots=2, trigger_ms=1000)
    for index in range(3):
        Node.objects.create(cluster=cluster, index=index, name=f"n{index}", active=index < 2)
    rows = [Stream.objects.create(cluster=cluster, name=f"s{n}", rate=n) for n in (10.0, 30.0)]
    nodes = [
        NodeRow(node.index, node.name, node.capacity, node.active)
        for node in cluster.nodes.order_by("index")
    ]
    streams = [StreamRow(row.pk, row.rate or 0.0) for row in rows]
    proposal = Proposal.objects.create(
        cluster=cluster, planner="placement", state="ready", requested_at=NOW
    )
    proposal.snapshot = ClusterSnapshot(1, 0.1, nodes, streams, [], {}, [], [])
    return proposal


def set_rates(first: float, second: float) -> None:
    Stream.objects.filter(name="s10.0").update(rate=first)
    Stream.objects.filter(name="s30.0").update(rate=second)


def seen(proposal: Proposal) -> tuple[datetime | None, datetime | None]:
    return proposal.drifting_since, proposal.drift_seen_at


def observed(proposal: Proposal, now: datetime) -> Drift:
    drift = observe_drift(proposal, policy=POLICY, now=now)
    stored = Proposal.objects.values_list("drifting_since", "drift_seen_at").get(pk=proposal.pk)
    assert stored == (proposal.drifting_since, proposal.drift_seen_at)
    return drift


@pytest.mark.parametrize(
    ("first", "second", "change", "exceeded"),
    [
        (10.0, 30.0, 0.0, 0),
        (14.0, 26.0, 0.2, 0),
        (14.0, 25.9, 0.2025, 1),
        (10.0, 70.0, 1.0, 1),
    ],
)
def test_the_change_of_rates_is_its_sum_over_that_of_the_rates(
    proposal: Proposal, first: float, second: float, change: float, exceeded: int
) -> None:
    """Changes in both directions do not cancel out."""
    set_rates(first, second)
    drift = drift_of(proposal, policy=POLICY, now=NOW)
    assert drift.rate_change == pytest.approx(change)
    assert len(drift.exceeded) == exceeded


def test_a_removed_stream_has_changed_by_all_of_its_rate(proposal: Proposal) -> None:
    Stream.objects.filter(name="s10.0").delete()
    assert drift_of(proposal, policy=POLICY, now=NOW).rate_change == pytest.approx(0.25)


def test_a_snapshot_without_streams_does_not_change(proposal: Proposal) -> None:
    proposal.snapshot = ClusterSnapshot(1, 0.1, [], [], [], {}, [], [])
    assert drift_of(proposal, policy=POLICY, now=NOW).rate_change == 0.0


def test_nodes_that_people_change_are_named(proposal: Proposal) -> None:
    Node.objects.filter(index=2).update(active=True, capacity=7.0)
    assert not drift_of(proposal, policy=POLICY, now=NOW).exceeded, "it was not active"
    Node.objects.filter(index=0).update(active=False)
    Node.objects.filter(index=1).update(capacity=7.0)
    drift = drift_of(proposal, policy=POLICY, now=NOW)
    assert (drift.gone_nodes, drift.capacities) == ([0], [1])
    assert (drift.stale, drift.changed, len(drift.exceeded)) == (True, True, 2)


def test_drift_starts_with_its_observation_and_is_stored(proposal: Proposal) -> None:
    set_rates(30.0, 90.0)
    assert drift_of(proposal, policy=POLICY, now=NOW).drifting_since == NOW.isoformat()
    assert proposal.drifting_since is None, "only an observation is stored"
    assert observed(proposal, NOW).lasted_s == 0.0
    assert seen(proposal) == (NOW, NOW)
    almost = NOW + STORED_EVERY - INSTANT
    assert observed(proposal, almost).lasted_s == pytest.approx(STORED_EVERY.total_seconds())
    assert proposal.drift_seen_at == NOW
    observed(proposal, NOW + STORED_EVERY)
    assert seen(proposal) == (NOW, NOW + STORED_EVERY)
    set_rates(10.0, 30.0)
    assert observed(proposal, NOW + STORED_EVERY + INSTANT).drifting_since is None
    assert seen(proposal) == (None, None)


@pytest.mark.parametrize("took_s", [0.0, 2.0])
def test_a_pause_of_the_observation_starts_again(proposal: Proposal, took_s: float) -> None:
    """A minute, and more where a review takes long."""
    proposal.review = Review(99, NOW.isoformat(), took_s, 0, {}, {}, {}, None, 0).to_json()
    set_rates(30.0, 90.0)
    pause = UNSEEN + timedelta(seconds=REVIEW_TIMES * took_s)
    observed(proposal, NOW)
    assert observed(proposal, NOW + pause).lasted_s == pause.total_seconds()
    again = NOW + 2 * pause + INSTANT
    drift = observed(proposal, again)
    assert (drift.lasted_s, proposal.drifting_since) == (0.0, again)


def test_a_minute_is_the_longest_pause_without_a_review(proposal: Proposal) -> None:
    set_rates(30.0, 90.0)
    observed(proposal, NOW)
    assert observed(proposal, NOW + timedelta(seconds=60)).lasted_s == 60.0
    assert observed(proposal, NOW + timedelta(seconds=120, microseconds=1)).lasted_s == 0.0


def test_drift_lasts_so_many_milliseconds(proposal: Proposal) -> None:
    set_rates(30.0, 90.0)
    observed(proposal, NOW)
    assert observed(proposal, NOW + timedelta(seconds=1.23456)).lasted_s == 1.235


def test_drift_that_is_over_is_cleared_without_samples(proposal: Proposal) -> None:
    """The time that it was seen does not start a later drift either."""
    set_rates(30.0, 90.0)
    observed(proposal, NOW)
    set_rates(10.0, 30.0)
    Cluster.objects.update(last_sample_at=NOW - timedelta(hours=1))
    observed(proposal, NOW + SECOND)
    assert seen(proposal) == (None, None)
    proposal.drift_seen_at = NOW
    set_rates(30.0, 90.0)
    assert drift_of(proposal, policy=POLICY, now=NOW + SECOND).lasted_s == 0.0


def test_a_clock_that_goes_back_starts_again(proposal: Proposal) -> None:
    set_rates(30.0, 90.0)
    observed(proposal, NOW)
    assert observed(proposal, NOW - SECOND).lasted_s == 0.0
    assert proposal.drifting_since == NOW - SECOND


def test_drift_without_recent_samples_does_not_count(proposal: Proposal) -> None:
    set_rates(30.0, 90.0)
    observed(proposal, NOW)
    now = NOW + UNSEEN
    age = timedelta(seconds=oldest_s(1000))
    Cluster.objects.update(last_sample_at=now - age)
    assert observed(proposal, now).lasted_s == UNSEEN.total_seconds()
    Cluster.objects.update(last_sample_at=now - age - INSTANT)
    assert observed(proposal, now + STORED_EVERY).lasted_s == 0.0
    assert proposal.drift_seen_at == now, "no sample is not an observation"


@pytest.mark.parametrize(
    ("took_s", "pause_s"),
    [(None, 8.0), (0.0, 8.0), (0.4, 8.0), (1.5, 30.0)],
)
def test_a_review_is_due_after_its_pause(
    proposal: Proposal, took_s: float | None, pause_s: float
) -> None:
    """Twenty times its duration, and at least eight seconds; a new proposal counts as reviewed."""
    if took_s is not None:
        proposal.review = Review(1, NOW.isoformat(), took_s, 0, {}, {}, {}, None, 0).to_json()
        proposal.requested_at = NOW - timedelta(days=1)
    due = NOW + timedelta(seconds=pause_s)
    assert staleness._is_due(proposal, due)
    assert not staleness._is_due(proposal, due - INSTANT)


@pytest.mark.parametrize(
    ("applicable", "gain_lost", "differs"),
    [(2, 0.5, False), (1, 0.5, True), (2, 0.6, True), (1, 0.6, True), (2, None, True)],
)
def test_a_review_is_announced_if_it_differs(
    applicable: int, gain_lost: float | None, differs: bool
) -> None:
    before = Review(1, NOW.isoformat(), 0.1, 2, {}, {}, {}, 0.5, 0)
    fresh = Review(2, NOW.isoformat(), 0.2, applicable, {}, {}, {}, gain_lost, 0)
    assert staleness._differs(before.to_json(), fresh) is differs
    assert staleness._differs({}, fresh)


@pytest.mark.parametrize(
    ("state", "lost", "exceeded"),
    [("ready", 0.9, 1), ("approved", 0.9, 1), ("executing", 0.9, 0), ("ready", 0.25, 0)],
)
def test_a_lost_gain_is_drift_of_waiting_proposals(
    proposal: Proposal, state: str, lost: float, exceeded: int
) -> None:
    """An execution realizes the gain, so that nothing is left of it."""
    proposal.review = Review(1, NOW.isoformat(), 0.0, 0, {}, {}, {}, lost, 0).to_json()
    proposal.state = state
    drift = drift_of(proposal, policy=POLICY, now=NOW)
    assert len(drift.exceeded) == exceeded
    assert drift.gain_lost == (None if state == "executing" else lost)


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ((0.0, 0.0), []),
        ((0.0, 1.3), []),
        ((0.0, 1.4), ["split_overload"]),
        # What was not to end is not missed.
        ((1.0, 4.0), []),
    ],
)
def test_a_plan_that_no_longer_ends_its_problem_is_stale_after_the_hold_time_of_alerts(
    proposal: Proposal, limits: tuple[float, float], left: list[str]
) -> None:
    promised, after = limits
    proposal.before, proposal.after = {"split_overload": 3.4}, {"split_overload": promised}
    present = {"split_overload": 6.7}, {"split_overload": after}
    proposal.review = Review(99, NOW.isoformat(), 0.0, 1, {}, *present, 0.0, 0).to_json()
    policy = settings_of({"drift_hold_s": 600, "alert_hold_s": 30})
    observe_drift(proposal, policy=policy, now=NOW)
    drift = observe_drift(proposal, policy=policy, now=NOW + timedelta(seconds=30))
    assert (drift.left, drift.stale) == (left, bool(left))


@pytest.mark.parametrize(("count", "stale"), [(0, False), (1, True)])
def test_actions_on_what_others_changed_are_stale(
    proposal: Proposal, count: int, stale: bool
) -> None:
    obstacles = {str(Obstacle.CHANGED): count, "ended": 3}
    version = proposal.cluster.routing_version
    proposal.review = Review(version, NOW.isoformat(), 0.0, 0, obstacles, {}, {}, None, 0).to_json()
    drift = drift_of(proposal, policy=POLICY, now=NOW)
    assert (drift.obstacles, drift.stale) == (obstacles, stale)


def test_obstacles_of_another_routing_version_are_counted_again(proposal: Proposal) -> None:
    stale = Review(99, NOW.isoformat(), 0.0, 0, {"changed": 3}, {}, {}, None, 0)
    proposal.review = stale.to_json()
    assert drift_of(proposal, policy=POLICY, now=NOW).obstacles == {}


def test_a_plan_that_exceeds_a_limit_is_stale_after_the_hold_time_of_alerts(
    proposal: Proposal,
) -> None:
    before, after = {"imbalance": 0.1}, {"imbalance": 0.3}
    proposal.review = Review(99, NOW.isoformat(), 0.0, 1, {}, before, after, 0.0, 0).to_json()
    policy = settings_of({"drift_hold_s": 600, "alert_hold_s": 30})
    observe_drift(proposal, policy=policy, now=NOW)
    drift = observe_drift(proposal, policy=policy, now=NOW + timedelta(seconds=30))
    assert (drift.raised, drift.stale) == (["imbalance"], True)
