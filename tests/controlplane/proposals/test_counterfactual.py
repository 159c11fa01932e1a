"""The counterfactual is the model of planning with recorded rates, and knows its error."""

from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Execution, LedgerEntry, Query
from controlplane.proposals import ledger
from controlplane.proposals.counterfactual import MEASURES, counterfactual, node_counterfactual
from tests.support.execution import begun, carried_out, prepared_scattered
from tests.support.recorded import record_arrivals, record_samples

pytestmark = pytest.mark.django_db(transaction=True)
PERIODS = 12


@pytest.fixture
def execution(approver: Actor, operator: Actor, sf: Cluster) -> Execution:
    """A completed execution that ended two minutes ago."""
    proposal = begun(approver, prepared_scattered(operator, sf))
    carried_out(proposal)
    Execution.objects.update(finished_at=timezone.now() - timedelta(minutes=2))
    return Execution.objects.select_related("proposal", "cluster").get()


def test_with_the_snapshots_rates_it_is_the_plan_before_and_after(execution: Execution) -> None:
    proposal, cluster = execution.proposal, execution.cluster
    begin = timezone.now() - timedelta(minutes=3)
    record_arrivals(cluster, begin, [1.0] * PERIODS + [2.0] * PERIODS)
    result = counterfactual(execution, list(proposal.plan), begin, timezone.now())
    assert result is not None
    for name in MEASURES:
        # The replication factor is a ratio of rates, the others are proportional to them.
        growth = 1.0 if name == "replication_factor" else 2.0
        for values, stored in (
            (result.without, proposal.before),
            (result.modelled, proposal.after),
        ):
            assert values[name][0] == pytest.approx(stored[name])
            assert values[name][-1] == pytest.approx(growth * stored[name])
    assert np.isnan(result.measured["imbalance"]).all()
    assert result.interval("imbalance", begin) is None, "nothing was measured"


def test_queries_that_ended_do_not_count(execution: Execution) -> None:
    cluster, begin = execution.cluster, timezone.now() - timedelta(minutes=3)
    record_arrivals(cluster, begin, [1.0] * PERIODS)
    moment = begin + timedelta(seconds=65)
    Query.objects.filter(cluster=cluster).update(state="ended", ended_at=moment)
    result = counterfactual(execution, [], begin, timezone.now())
    assert result is not None
    assert result.without["fullest"][0] > 0
    assert result.without["fullest"][-1] == 0


def test_without_arrivals_nothing_is_known(execution: Execution) -> None:
    assert (
        counterfactual(execution, [], timezone.now() - timedelta(minutes=3), timezone.now()) is None
    )


def test_the_ledger_has_it_with_the_error_of_the_model(execution: Execution) -> None:
    proposal, cluster = execution.proposal, execution.cluster
    assert execution.finished_at is not None
    begin = execution.finished_at - timedelta(seconds=20)
    record_arrivals(cluster, begin, [1.0] * 9)
    record_samples(proposal, execution.finished_at)
    assert ledger.write_entries(timezone.now()) == 1
    entry = LedgerEntry.objects.get()
    assert entry.without["replication_factor"] == pytest.approx(
        proposal.before["replication_factor"]
    )
    assert entry.without["fullest"] == pytest.approx(proposal.before["fullest"])
    half = abs(entry.measured["fullest"] - proposal.after["fullest"])
    assert entry.without_error["fullest"] == pytest.approx(half, abs=1e-6)


def test_a_node_has_its_load_without_the_plan(execution: Execution) -> None:
    """As the snapshot, with the recorded rates; none for a plan that does not change the node."""
    proposal, cluster = execution.proposal, execution.cluster
    begin = timezone.now() - timedelta(minutes=3)
    record_arrivals(cluster, begin, [2.0] * PERIODS)
    record_samples(proposal, begin)
    nodes = [node.index for node in proposal.snapshot.nodes]
    changed = [
        place
        for place, (was, is_now) in enumerate(
            zip(proposal.before["rates"], proposal.after["rates"], strict=True)
        )
        if was != pytest.approx(is_now)
    ]
    place = changed[0]
    plan, stop = list(proposal.plan), timezone.now()
    load = node_counterfactual(execution, plan, nodes[place], begin, stop)
    assert load is not None
    assert load.without[0] == pytest.approx(2 * proposal.before["rates"][place])
    assert load.modelled[0] == pytest.approx(2 * proposal.after["rates"][place])
    # The samples have 1.1 times the load of the plan, the arrivals twice the rates.
    assert load.interval == pytest.approx(0.9 * proposal.after["rates"][place], rel=0.05)
    assert node_counterfactual(execution, [], nodes[place], begin, stop) is None
    assert node_counterfactual(execution, plan, 99, begin, stop) is None


def test_the_last_plan_is_the_one_in_effect(execution: Execution) -> None:
    cluster, now = execution.cluster, timezone.now()
    last = ledger.last_applied(cluster, now)
    assert last is not None
    assert (last[0].pk, last[1]) == (execution.pk, list(execution.proposal.plan))
    assert ledger.last_applied(cluster, now - timedelta(minutes=3)) is None, "it ended later"
    assert ledger.last_applied(cluster, now + timedelta(days=2)) is None, "too long ago"
