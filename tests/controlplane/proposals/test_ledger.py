"""What was promised is compared with what was measured, once, whatever crashes."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Execution, LedgerEntry, Node, Proposal
from controlplane.planning.measures import measures
from controlplane.policies.planner_record import record_of
from controlplane.proposals import ledger
from controlplane.proposals.executions import control, progression
from controlplane.telemetry import time_series
from tests.support.execution import batch, begun, carried_out, under_way

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def done(approver: Actor, cluster: Cluster) -> Proposal:
    """A proposal that is carried out."""
    proposal = begun(approver, cluster)
    carried_out(proposal)
    assert proposal.state == "done"
    return proposal


def end_of(proposal: Proposal) -> datetime:
    finished = Execution.objects.get(proposal=proposal).finished_at
    assert finished is not None
    return finished


def measure(cluster: Cluster, begin: datetime, count: int, **changed: Any) -> None:
    """Store a sample a second from `begin` on."""
    values = {
        "read": 100.0, "delivered": 150.0, "loads": [50.0, 0.0, 0.0, 0.0], "p95": 400.0,
        "span_s": 1.0, "waiting": 0.0,
    } | changed  # fmt: skip
    begin_ms = 1000 * begin.timestamp()
    time_series.record(cluster, (values | {"t": begin_ms + 1000 * at} for at in range(count)))


def test_an_entry_is_written_once_it_has_settled(done: Proposal, cluster: Cluster) -> None:
    """Predicted is what the proposal said; measured are means over the samples after the end."""
    end = end_of(done)
    measure(cluster, end - timedelta(seconds=40), 10, p95=300.0)
    assert ledger.write_entries(end + timedelta(seconds=10)) == 0
    measure(cluster, end + timedelta(seconds=6), 40)
    assert ledger.write_entries(end + timedelta(seconds=50)) == 1
    entry = LedgerEntry.objects.get()
    assert (entry.proposal, entry.planner, entry.outcome) == (done, "placement", "done")
    assert (entry.applied, entry.skipped, entry.samples) == (len(done.actions), 0, 30)
    assert entry.approved == pytest.approx(entry.expected)
    assert entry.approved["imbalance"] == pytest.approx(done.predicted["imbalance"])
    assert entry.approved["replication_factor"] == done.predicted["replication_factor"]
    assert entry.approved["bytes"] == done.predicted["bytes"]
    assert entry.approved["pause_ms"] == done.predicted["pause_ms"]
    assert entry.measured == {
        "imbalance": pytest.approx(0.1 - 0.025),
        "fullest": pytest.approx(0.1),
        "replication_factor": 1.5,
        "traffic": 50.0,
        "bytes": 1000 * len(done.actions),
        "pause_ms": 700.0,
        "latency_ms": 400.0,
    }


def test_an_entry_waits_for_records_of_before_the_plan(done: Proposal, cluster: Cluster) -> None:
    """More of them at first: a ladder that was armed in an overload."""
    end = end_of(done)
    measure(cluster, end + timedelta(seconds=6), 34, waiting=9000.0, p95=90_000.0)
    assert ledger.write_entries(end + timedelta(seconds=42)) == 0
    measure(cluster, end + timedelta(seconds=40), 40, waiting=100.0)
    assert ledger.write_entries(end + timedelta(seconds=82)) == 1
    assert LedgerEntry.objects.get().measured["latency_ms"] == 400.0


def test_the_latency_that_was_before_is_what_is_predicted(done: Proposal, cluster: Cluster) -> None:
    begin = Execution.objects.get(proposal=done).started_at
    measure(cluster, begin - timedelta(seconds=30), 20, p95=250.0)
    ledger.write_entries(end_of(done) + ledger.LATEST)
    assert LedgerEntry.objects.get().approved["latency_ms"] == 250.0


@pytest.mark.parametrize(("after", "effect"), [(902.0, "unchanged"), (500.0, "helped")])
def test_a_latency_within_the_spread_of_its_batches_is_unchanged(
    done: Proposal, cluster: Cluster, after: float, effect: str
) -> None:
    begin, end = Execution.objects.get(proposal=done).started_at, end_of(done)
    for start, latency in ((begin - timedelta(seconds=40), 958.0), (end, after)):
        for second in range(6, 40):
            sign = 1 if second % 2 else -1
            measure(cluster, start + timedelta(seconds=second), 1, p95=latency + sign * 100)
    ledger.write_entries(end + ledger.LATEST)
    assessed = {row["measure"]: row["effect"] for row in LedgerEntry.objects.get().assessment}
    assert assessed["latency_ms"] == effect


def test_asked_again_it_is_written_once(done: Proposal, cluster: Cluster) -> None:
    later = end_of(done) + ledger.LATEST
    assert ledger.write_entries(later) == 1
    assert ledger.write_entries(later) == 0
    execution = Execution.objects.get(proposal=done)
    samples = ledger._samples_after(execution)
    assert not ledger._write(execution, samples, later), "as after a crash in between"
    assert LedgerEntry.objects.count() == 1


def test_what_is_not_measured_is_absent(done: Proposal) -> None:
    """A cluster that stopped is assessed by its steps alone, after ten minutes."""
    assert ledger.write_entries(end_of(done) + ledger.LATEST - timedelta(seconds=1)) == 0
    assert ledger.write_entries(end_of(done) + ledger.LATEST) == 1
    entry = LedgerEntry.objects.get()
    assert set(entry.measured) == {"bytes", "pause_ms"}
    assert entry.samples == 0


def test_the_next_execution_ends_the_waiting(
    approver: Actor, done: Proposal, cluster: Cluster
) -> None:
    """From then on it measures another plan."""
    end = end_of(done)
    measure(cluster, end + timedelta(seconds=5), 3)
    other = Proposal.objects.get(pk=done.pk)
    other.pk = None
    other.state = "executing"
    other.save()
    Execution.objects.create(proposal=other, cluster=cluster, started_at=end + timedelta(seconds=7))
    assert ledger.write_entries(end + timedelta(seconds=9)) == 1
    assert LedgerEntry.objects.get().samples == 2


def test_of_a_stopped_one_the_moves_that_were_made_count(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    proposal = begun(approver, cluster)
    step = under_way(proposal)
    assert step is not None
    control.stop(operator, proposal, "enough")
    batch(cluster, step)
    ledger.write_entries(end_of(proposal) + ledger.LATEST)
    entry = LedgerEntry.objects.get()
    assert (entry.outcome, entry.applied) == ("stopped", 1)
    found = measures(proposal.snapshot, proposal.plan[:1])
    assert entry.expected["imbalance"] == pytest.approx(found["imbalance"])
    assert entry.expected["replication_factor"] == pytest.approx(found["replication_factor"])


def test_one_that_went_stale_is_written_and_says_nothing_of_its_planner(
    approver: Actor, cluster: Cluster
) -> None:
    """What it was made for had changed by then."""
    proposal = begun(approver, cluster)
    step = under_way(proposal)
    assert step is not None
    Node.objects.filter(cluster=cluster, index=0).update(capacity=1)
    batch(cluster, step)
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "stale"
    assert ledger.write_entries(end_of(proposal) + ledger.LATEST) == 1
    entry = LedgerEntry.objects.get()
    assert (entry.outcome, entry.applied) == ("stale", 1)
    assert record_of(cluster, proposal.planner).runs == 0


def test_of_one_rolled_back_the_state_before_is_predicted(
    approver: Actor, operator: Actor, done: Proposal, cluster: Cluster
) -> None:
    ledger.write_entries(end_of(done) + ledger.LATEST)
    assert LedgerEntry.objects.get().outcome == "done"
    control.roll_back(operator, done, done.seal, "worse than thought")
    assert not LedgerEntry.objects.exists(), "what was measured does not hold any more"
    assert ledger.write_entries(timezone.now() + timedelta(hours=1)) == 0, "it is under way"
    carried_out(done)
    ledger.write_entries(end_of(done) + ledger.LATEST)
    entry = LedgerEntry.objects.get()
    assert (entry.outcome, entry.applied) == ("rolled back", 0)
    assert entry.expected["imbalance"] == pytest.approx(done.before["imbalance"])
    assert entry.measured["bytes"] == 2000 * len(done.actions)


def test_one_that_cannot_be_judged_keeps_no_other_waiting(
    done: Proposal, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Its snapshot has been damaged."""
    broken = Proposal.objects.get(pk=done.pk)
    broken.pk, broken.snapshot_row = None, None
    broken.save()
    end = end_of(done)
    Execution.objects.create(
        proposal=broken, cluster=cluster, done=1,
        started_at=end - timedelta(minutes=5), finished_at=end - timedelta(minutes=4),
    )  # fmt: skip
    assert ledger.write_entries(end + ledger.LATEST) == 1
    assert "No ledger entry" in caplog.text
    assert LedgerEntry.objects.get().proposal == done
