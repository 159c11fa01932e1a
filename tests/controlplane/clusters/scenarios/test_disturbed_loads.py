"""What the scenarios that planners repair do to queries, nodes and rates, and their ends."""

from datetime import timedelta

import pytest
from django.db.models.functions import Coalesce
from django.utils import timezone

from algorithms.balance import imbalance
from controlplane.clusters import scenarios
from controlplane.clusters.scenarios.disturbed_loads import overload_factor
from controlplane.errors import Conflict
from controlplane.models import Cluster, Proposal, Scenario, Stream, Task
from controlplane.planning.load_model import LoadModel
from controlplane.planning.snapshots import take_snapshot
from controlplane.policies.store import policy_of
from controlplane.proposals import computation, requests
from controlplane.telemetry.arrivals import PERIOD_S
from controlplane.telemetry.series import start_of
from tests.controlplane.clusters.scenarios.test_service import cluster  # noqa: F401 - a fixture
from tests.support import cluster as made
from tests.support.admission import arrived

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def queries(cluster: Cluster) -> None:  # noqa: F811
    """Eight queries, two on each node."""
    made.placed(made.actor(), cluster, {f"q{n}": [f"s{n % 6}"] for n in range(8)})
    cluster.refresh_from_db()


def start(cluster: Cluster, kind: str) -> Scenario:  # noqa: F811
    return scenarios.start_scenario(made.actor(name=f"starts-{kind}"), cluster, kind)


def loads(cluster: Cluster) -> LoadModel:  # noqa: F811
    return LoadModel.of(take_snapshot(cluster.pk, cluster.nu))


@pytest.mark.usefixtures("queries")
def test_uneven_queries_exceed_the_limit_of_the_imbalance(cluster: Cluster) -> None:  # noqa: F811
    row = start(cluster, "uneven_queries")
    model = loads(cluster)
    shares = model.loads / model.capacities * row.factors["*"]
    assert imbalance(shares) > 1.5 * policy_of(cluster).watch_imbalance
    assert shares.argmax() == row.node


@pytest.mark.usefixtures("queries")
def test_nodes_return_without_tasks_once_a_query_of_several_tasks_runs(
    cluster: Cluster,  # noqa: F811
) -> None:
    row = start(cluster, "node_returns")
    active = cluster.nodes.filter(active=True).values_list("index", flat=True)
    assert (list(active), row.before) == ([0, 1], {"active": [2, 3]})
    assert not Task.objects.filter(node__index__in=(2, 3)).exists()
    scenarios.reconcile_scenarios(row.started_at)
    assert active.all().count() == 2
    made.placed_split(made.actor(name="a-splitter"), cluster)
    scenarios.reconcile_scenarios(row.started_at)
    assert active.all().count() == 2, "its load is not measured yet"
    scenarios.reconcile_scenarios(row.started_at + timedelta(minutes=2))
    assert active.all().count() == 4
    assert not Task.objects.filter(node__index__in=(2, 3)).exists()


@pytest.mark.usefixtures("queries")
def test_an_overload_limits_the_nodes_until_its_end(cluster: Cluster) -> None:  # noqa: F811
    row = start(cluster, "overload")
    model = loads(cluster)
    assert (model.loads / model.capacities).mean() * row.factors["*"] == pytest.approx(1.25, 0.01)
    assert cluster.nodes.filter(emulated=True).count() == 4
    scenarios.end_scenario(made.actor(name="an-ender"), row)
    assert not cluster.nodes.filter(emulated=True).exists()


@pytest.mark.usefixtures("queries")
def test_a_hot_stream_makes_any_node_too_full(cluster: Cluster) -> None:  # noqa: F811
    """Wherever the task of the key is: the further records, at one node, exceed the limit."""
    Stream.objects.create(cluster=cluster, name="unread", rate=20.0)
    Stream.objects.create(cluster=cluster, name="rare", rate=0.01)
    row = start(cluster, "hot_key")
    ((name, factor),) = row.factors.items()
    assert name == "unread"
    model = loads(cluster)
    for node in range(4):
        loaded = model.loads.copy()
        loaded[node] += 20.0 * (factor - 1)
        assert imbalance(loaded / model.capacities) > 1.5 * policy_of(cluster).watch_imbalance


def test_a_grown_stream_fills_its_split_node_and_fits_another(cluster: Cluster) -> None:  # noqa: F811
    row = start(cluster, "growing_stream")
    cluster.refresh_from_db()
    ((name, factor),) = row.factors.items()
    stream = cluster.streams.get(name=name)
    others = sum(s.weight for s in cluster.streams.filter(split=stream.split).exclude(pk=stream.pk))
    assert cluster.split_emulated
    assert stream.weight * factor < cluster.split_capacity < stream.weight * factor + others
    scenarios.end_scenario(made.actor(name="an-ender"), row)
    cluster.refresh_from_db()
    assert (cluster.split_capacity, cluster.split_emulated) == (0, False)


def test_without_queries_there_is_nothing_to_gather(cluster: Cluster) -> None:  # noqa: F811
    with pytest.raises(Conflict) as refusal:
        start(cluster, "uneven_queries")
    assert refusal.value.code == "no_such_node"
    assert not Scenario.objects.exists()


def offered(cluster: Cluster, planner: str) -> Proposal:  # noqa: F811
    """Return the plan of a planner for the rates of the scenarios in effect."""
    factors = Scenario.objects.get().factors
    cluster.refresh_from_db()
    rates = {
        stream.name: [stream.weight * factors.get(stream.name, factors.get("*", 1.0))] * 12
        for stream in cluster.streams.all()
    }
    for stream in cluster.streams.all():
        cluster.streams.filter(pk=stream.pk).update(rate=rates[stream.name][0])
    arrived(cluster, timezone.now(), rates)
    proposal = requests.request(made.actor(name="a-planner"), cluster, planner=planner)
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    return proposal


@pytest.mark.usefixtures("queries")
def test_placement_has_a_gain_for_uneven_queries(cluster: Cluster) -> None:  # noqa: F811
    start(cluster, "uneven_queries")
    proposal = offered(cluster, "placement")
    assert proposal.state == "ready"
    limit = policy_of(cluster).watch_imbalance
    assert proposal.before["imbalance"] > limit >= proposal.after["imbalance"]


def test_migration_has_a_gain_for_nodes_that_return(cluster: Cluster) -> None:  # noqa: F811
    """The streams that no query of one task reads rise, and its tasks move them to the nodes."""
    made.placed(made.actor(), cluster, {f"q{n}": [f"s{2 + n % 4}"] for n in range(8)})
    cluster.refresh_from_db()
    row = start(cluster, "node_returns")
    assert row.factors.keys() == {"s0", "s1"}
    made.placed_split(made.actor(name="a-splitter"), cluster)
    scenarios.reconcile_scenarios(row.started_at + timedelta(minutes=2))
    proposal = offered(cluster, "migration")
    assert proposal.state == "ready"
    limit = policy_of(cluster).watch_imbalance
    assert proposal.before["imbalance"] > 1.5 * limit > limit >= proposal.after["imbalance"]


def test_admission_has_a_gain_for_a_grown_stream(cluster: Cluster) -> None:  # noqa: F811
    start(cluster, "growing_stream")
    proposal = offered(cluster, "admission")
    assert proposal.state == "ready"
    assert proposal.before["split_overload"] > 0
    assert proposal.after["split_overload"] == 0


@pytest.mark.usefixtures("queries")
def test_a_scenario_soon_after_another_has_the_rates_before_it(cluster: Cluster) -> None:  # noqa: F811
    calm, now = overload_factor(cluster), timezone.now()
    arrived(cluster, now, {row.name: [row.weight] * 18 for row in cluster.streams.all()})
    rush = start(cluster, "rush_hour")
    cluster.streams.update(rate=3 * Coalesce("rate", "declared_rate", 1.0))
    assert overload_factor(cluster) == pytest.approx(calm, rel=0.05)
    scenarios.end_scenario(made.actor(name="an-ender"), rush)
    assert overload_factor(cluster) == pytest.approx(calm, rel=0.05)
    Scenario.objects.update(ended_at=now - timedelta(minutes=4))
    assert overload_factor(cluster) == pytest.approx(calm / 3, rel=0.05), "its own rates by then"


@pytest.mark.usefixtures("queries")
def test_the_rates_before_a_scenario_are_not_those_of_an_earlier_one(cluster: Cluster) -> None:  # noqa: F811
    """The first one ended four minutes ago; the second began before the rates settled."""
    calm, now = overload_factor(cluster), start_of(timezone.now(), PERIOD_S)
    weights = {row.name: row.weight for row in cluster.streams.all()}
    arrived(cluster, now, {name: [rate] * 24 + [3 * rate] * 36 for name, rate in weights.items()})
    cluster.streams.update(rate=3 * Coalesce("rate", "declared_rate", 1.0))
    for began, ended in ((6, 4), (3, None)):
        Scenario.objects.create(
            cluster=cluster, kind="rush_hour", ends_at=now + timedelta(minutes=5),
            started_at=now - timedelta(minutes=began),
            ended_at=now - timedelta(minutes=ended) if ended else None,
        )  # fmt: skip
    assert overload_factor(cluster) == pytest.approx(calm, rel=0.05)
