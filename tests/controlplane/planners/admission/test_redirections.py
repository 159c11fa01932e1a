"""Redirections of streams: by the loop, by a proposal and by a person."""

from datetime import datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster, Proposal, Redirection, Stream
from controlplane.policies.exclusions import add_exclusion
from controlplane.policies.store import update_policy
from controlplane.proposals import computation, requests
from controlplane.topology.rows import current_table
from controlplane.topology.split_nodes import redirect, set_split_capacity
from controlplane.watch import watch_cluster
from controlplane.wire.routing.cluster_actions import AssignStream
from tests.support.admission import arrived
from tests.support.cluster import actor
from tests.support.watching import measured, newest

pytestmark = pytest.mark.django_db(transaction=True)
PERIODS = 20


@pytest.fixture
def loaded(operator: Actor, sf: Cluster, now: datetime) -> Cluster:
    """Split nodes of 100 records/s; split node 0 has streams with 60 and 70 records/s."""
    set_split_capacity(operator, sf, 100.0, emulated=True)
    Stream.objects.filter(cluster=sf).update(split=1)
    Stream.objects.filter(cluster=sf, name__in=("s0", "s1")).update(split=0)
    rates = {f"s{i}": [1.0] * PERIODS for i in range(6)}
    arrived(sf, now, rates | {"s0": [60.0] * PERIODS, "s1": [70.0] * PERIODS})
    measured(sf, now)
    # The routing table has what the rows were set to.
    Cluster.objects.filter(pk=sf.pk).update(applied_version=sf.routing_version, desired="running")
    sf.refresh_from_db()
    return sf


def splits(cluster: Cluster) -> dict[str, int]:
    return dict(cluster.streams.values_list("name", "split"))


def load_of(cluster: Cluster, split: int) -> float:
    rates = {"s0": 60.0, "s1": 70.0}
    return sum(rates.get(name, 1.0) for name, of in splits(cluster).items() if of == split)


def test_the_loop_redirects_and_records(loaded: Cluster, now: datetime) -> None:
    version = loaded.routing_version
    watch_cluster(loaded, now)
    assert newest(loaded, "admission").code == "redirected"
    assert all(load_of(loaded, split) <= 100 for split in set(splits(loaded).values()))
    row = Redirection.objects.get()
    assert (row.source, row.actor, row.version) == (0, "admission", version + 1)
    assert "130 % of its capacity" in row.reason
    audit = AuditEntry.objects.filter(action="streams.redirect").get()
    assert (audit.actor, audit.after["redirected"]) == ("admission", 1)
    assert current_table(loaded.pk).splits == {
        stream.pk: stream.split for stream in loaded.streams.all()
    }


@pytest.mark.parametrize(
    ("rates", "most"),
    [
        # 94 of 100 records/s exceed nothing, and nothing moves.
        ({"s0": 60.0, "s1": 34.0}, 94),
        # Of 106, the split nodes are left below nine tenths: rates change.
        ({"s0": 60.0, "s1": 34.0, "s2": 12.0}, 90),
        # A stream of more than nine tenths has a split node to itself.
        ({"s0": 95.0, "s1": 34.0}, 99),
    ],
)
def test_redirections_leave_room_for_changing_rates(
    loaded: Cluster, now: datetime, rates: dict[str, float], most: float
) -> None:
    Stream.objects.filter(cluster=loaded).update(split=1)
    Stream.objects.filter(cluster=loaded, name__in=rates).update(split=0)
    steady = {f"s{i}": [rates.get(f"s{i}", 1.0)] * PERIODS for i in range(6)}
    arrived(loaded, now + timedelta(seconds=10 * PERIODS + 10), steady)
    before = splits(loaded)
    watch_cluster(loaded, now)
    loads = [0.0, 0.0, 0.0]
    for name, split in splits(loaded).items():
        loads[split] += rates.get(name, 1.0)
    assert max(loads) <= most
    assert (splits(loaded) == before) == (most == 94)


def test_the_next_cycle_leaves_it_alone(loaded: Cluster, now: datetime) -> None:
    watch_cluster(loaded, now)
    loaded.refresh_from_db()
    before = splits(loaded)
    watch_cluster(loaded, now + timedelta(seconds=1))
    assert newest(loaded, "admission").code == "within"
    assert splits(loaded) == before


def test_an_excluded_stream_stays(loaded: Cluster, now: datetime, operator: Actor) -> None:
    for name in ("s0", "s1"):
        until = now + timedelta(hours=1)
        add_exclusion(operator, loaded, "stream", name, "kept", until)
    watch_cluster(loaded, now)
    assert (splits(loaded)["s0"], splits(loaded)["s1"]) == (0, 0)


def test_the_policy_limits_split_nodes(loaded: Cluster, now: datetime) -> None:
    update_policy(actor("admin", "boss"), loaded, {"split_nodes": 2})
    Stream.objects.filter(cluster=loaded).exclude(name="s0").update(split=1)
    heavy = {f"s{i}": [90.0] * PERIODS for i in range(6)}
    arrived(loaded, now + timedelta(seconds=10 * PERIODS + 10), heavy)
    watch_cluster(loaded, now)
    assert newest(loaded, "admission").code == "split_limit"
    assert set(splits(loaded).values()) == {0, 1}


def test_switched_off_or_in_a_stopped_cluster_nothing_moves(loaded: Cluster, now: datetime) -> None:
    before = splits(loaded)
    update_policy(actor("admin", "boss"), loaded, {"redirects": "off"})
    watch_cluster(loaded, now)
    assert newest(loaded, "admission").code == "off"
    assert splits(loaded) == before


def test_recommended_a_person_decides(loaded: Cluster, now: datetime) -> None:
    update_policy(actor("admin", "boss"), loaded, {"redirects": "recommend"})
    before = splits(loaded)
    watch_cluster(loaded, now)
    proposal = Proposal.objects.get(cluster=loaded, planner="admission")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == Proposal.State.READY
    assert splits(loaded) == before
    assert (proposal.before["split_overload"], proposal.after["split_overload"]) == (30.0, 0.0)


def test_without_a_capacity_the_loop_waits(operator: Actor, sf: Cluster, now: datetime) -> None:
    arrived(sf, now, {"s0": [60.0] * PERIODS})
    measured(sf, now)
    Cluster.objects.filter(pk=sf.pk).update(desired="running")
    sf.refresh_from_db()
    watch_cluster(sf, now)
    assert newest(sf, "admission").code == "no_capacity"


@pytest.mark.parametrize("algorithm", ["profile", "drf_m", "drf", "ard", "ari", "par"])
def test_every_strategy_plans(loaded: Cluster, operator: Actor, algorithm: str) -> None:
    proposal = requests.request(operator, loaded, algorithm, {}, planner="admission")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == Proposal.State.READY, proposal.error
    moves = [p.action for p in proposal.plan if isinstance(p.action, AssignStream)]
    assert moves
    after = splits(loaded)
    names = dict(loaded.streams.values_list("id", "name"))
    after |= {names[move.stream]: move.split for move in moves}
    rates = {"s0": 60.0, "s1": 70.0}
    for split in set(after.values()):
        assert sum(rates.get(n, 1.0) for n, of in after.items() if of == split) <= 100


def test_a_stream_that_no_split_node_can_read_is_named(
    loaded: Cluster, operator: Actor, now: datetime
) -> None:
    set_split_capacity(operator, loaded, 50.0, emulated=True)
    proposal = requests.request(operator, loaded, "drf_m", {}, planner="admission")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == Proposal.State.FAILED
    assert "stream s1" in proposal.error


def test_a_period_is_a_multiple_of_the_stored_ones(loaded: Cluster, operator: Actor) -> None:
    proposal = requests.request(operator, loaded, "drf", {"period_s": 15.0}, planner="admission")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == Proposal.State.FAILED
    assert "15 s" in proposal.error


def test_a_person_redirects_and_opens(loaded: Cluster, operator: Actor) -> None:
    stream = loaded.streams.get(name="s3")
    redirect(operator, stream, 4, "its own")
    loaded.refresh_from_db()
    assert (stream.split, loaded.splits) == (4, 5)
    row = Redirection.objects.get(stream=stream)
    assert (row.source, row.target, row.reason, row.actor) == (1, 4, "its own", operator.name)
    with pytest.raises(Invalid) as bad:
        redirect(operator, stream, 1000)
    assert "split" in bad.value.fields


def test_bad_capacities(loaded: Cluster, operator: Actor) -> None:
    for capacity, emulated, field in (
        (-1.0, False, "split_capacity"), (float("nan"), False, "split_capacity"),
        (0.0, True, "split_emulated"),
    ):  # fmt: skip
        with pytest.raises(Invalid) as bad:
            set_split_capacity(operator, loaded, capacity, emulated=emulated)
        assert field in bad.value.fields
    loaded.refresh_from_db()
    assert (loaded.split_capacity, loaded.split_emulated) == (100.0, True)
    assert current_table(loaded.pk).split_capacity == 100.0
