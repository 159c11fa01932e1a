"""The page of a proposal: what still happens, locks, the diff, comments, and the proof."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import (
    AuditEntry,
    Cluster,
    Execution,
    LedgerEntry,
    Proposal,
    ProposalComment,
)
from controlplane.policies.gate import GateCode, Judgement, NextStep
from controlplane.proposals import comments, ledger, staleness
from controlplane.proposals.staleness import EVERY
from controlplane.topology import placement, queries
from tests.dashboard.views.test_executions import path_to
from tests.support import cluster as made
from tests.support.execution import (
    begun,
    carried_out,
    moved_names,
    moves_of,
    prepared_plan,
    prepared_scattered,
    scattered,
)
from tests.support.policies import set_policy
from tests.support.prepared import prepared
from tests.support.recorded import record_arrivals, record_samples

pytestmark = pytest.mark.django_db(transaction=True)
LIVE = {"hx-request": "true"}


@pytest.fixture
def proposal(operator: Actor) -> Proposal:
    """A proposal of several moves that waits for its approval."""
    cluster = prepared("small", lambda: made.small_cluster(operator), operator.user.pk)
    return prepared_plan(operator, prepared_scattered(operator, cluster))


def page_of(client: Client, proposal: Proposal, query: str = "") -> str:
    answer = client.get(path_to(proposal) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_parameters_have_their_titles(viewing: Client, proposal: Proposal) -> None:
    content = page_of(viewing, proposal)
    assert "<dt>Uneven load allowed</dt>" in content
    assert "<dt>nu</dt>" not in content


def end_queries(operator: Actor, proposal: Proposal, count: int) -> None:
    """End queries that the plan moves, and review it."""
    cluster = Cluster.objects.get(pk=proposal.cluster_id)
    queries.end(operator, cluster, moved_names(proposal)[:count])
    placement.place_pending(cluster.pk)
    staleness.review_waiting(timezone.now() + EVERY)
    proposal.refresh_from_db()


def test_the_approval_carries_what_still_happens(
    approving: Client, operator: Actor, proposal: Proposal
) -> None:
    """A number that has changed since is refused, and nothing is approved."""
    set_policy(proposal.cluster, tolerated_ended=1.0, tolerated_gain_loss=1.0)
    end_queries(operator, proposal, 2)
    left = len(proposal.actions) - 2
    content = page_of(approving, proposal)
    assert f'name="applicable" value="{left}"' in content
    assert content.count('class="gone"') == 2, "the diff shows which actions are skipped"
    sent = {"seal": proposal.seal, "applicable": str(left + 1)}
    approving.post(path_to(proposal, "approve/"), sent)
    proposal.refresh_from_db()
    assert proposal.state == "ready"
    approving.post(path_to(proposal, "approve/"), sent | {"applicable": str(left)})
    proposal.refresh_from_db()
    assert proposal.state in ("approved", "executing")


def test_the_approval_is_locked_when_the_gain_is_gone(
    approving: Client, operator: Actor, proposal: Proposal
) -> None:
    """While the cluster drifts too, no sentence of the page allows the approval."""
    set_policy(proposal.cluster, tolerated_ended=0.1, tolerated_gain_loss=0.1)
    end_queries(operator, proposal, len(moves_of(proposal)) - 1)
    content = page_of(approving, proposal)
    assert 'data-code="gain_lost"' in content
    assert 'id="do-approve" disabled' in content
    assert 'id="drift"' in content
    assert "It can be approved" not in content
    approving.post(path_to(proposal, "approve/"), {"seal": proposal.seal})
    proposal.refresh_from_db()
    assert proposal.state == "ready", "the service refuses it, too"


def test_the_diff_is_filtered_by_the_address(viewing: Client, proposal: Proposal) -> None:
    move = moves_of(proposal)[0]
    wanted = [m for m in moves_of(proposal) if (m.source, m.target) == (move.source, move.target)]
    text = f"from:{move.source} to:{move.target}"
    assert f'data-filter="{text}"' in page_of(viewing, proposal), "a cell of the matrix"
    content = page_of(viewing, proposal, f"?filter=from%3A{move.source}+to%3A{move.target}")
    assert content.count("data-place=") == len(wanted)
    fragment = viewing.get(f"{path_to(proposal)}actions/?filter=status:skipped").content.decode()
    assert "data-place=" not in fragment
    bad = viewing.get(f"{path_to(proposal)}actions/?filter=colour:red").content.decode()
    assert "There is no field colour" in bad
    assert viewing.get(f"{path_to(proposal)}?colour=red").status_code == 422


def test_a_live_update_leaves_diff_and_comments_alone(viewing: Client, proposal: Proposal) -> None:
    fragment = viewing.get(path_to(proposal), headers=LIVE).content.decode()
    assert fragment.count("hx-swap-oob") == 6
    assert "data-place=" not in fragment
    assert "<textarea" not in fragment


def test_a_page_without_the_plan_is_loaded_again_once_there_is_one(
    viewing: Client, proposal: Proposal
) -> None:
    """It has no place for the parts of the plan."""
    path, without = path_to(proposal), f"{path_to(proposal)}?plan=none"
    assert viewing.get(without, headers=LIVE)["HX-Refresh"] == "true"
    assert "hx-vals" not in viewing.get(path).content.decode()
    Proposal.objects.filter(pk=proposal.pk).update(state="computing", after={})
    assert """hx-vals='{"plan": "none"}'""" in viewing.get(path).content.decode()
    assert "HX-Refresh" not in viewing.get(without, headers=LIVE)


def test_comments_are_read_by_viewers_and_written_by_operators(
    operating: Client, viewing: Client, proposal: Proposal
) -> None:
    path = path_to(proposal, "comments/add/")
    assert viewing.post(path, {"text": "no"}).status_code == 403
    answer = operating.post(path, {"text": " <b>The crowd</b> leaves by noon "}, headers=LIVE)
    assert "&lt;b&gt;The crowd&lt;/b&gt; leaves by noon" in answer.content.decode()
    assert "leaves by noon" in page_of(viewing, proposal)
    assert "<textarea" not in page_of(viewing, proposal)
    for text in ("", "x" * (ProposalComment.MAX_LENGTH + 1)):
        refused = operating.post(path, {"text": text}, headers=LIVE)
        assert refused.status_code == 422
    assert ProposalComment.objects.get().author == "a-operator"
    assert AuditEntry.objects.filter(action="proposal.comment").count() == 1


def test_the_number_of_comments_is_bounded(
    operating: Client, proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comments, "MAX_COMMENTS", 1)
    path = path_to(proposal, "comments/add/")
    operating.post(path, {"text": "first"})
    assert operating.post(path, {"text": "second"}, headers=LIVE).status_code == 422
    assert ProposalComment.objects.count() == 1


def test_the_proof_has_the_counterfactual(approving: Client, approver: Actor) -> None:
    proposal = begun(approver, scattered(approver, made.small_cluster(approver)))
    carried_out(proposal)
    ended = timezone.now() - timedelta(minutes=2)
    Execution.objects.update(finished_at=ended, started_at=ended - timedelta(seconds=10))
    record_arrivals(proposal.cluster, ended - timedelta(seconds=30), [1.0] * 12)
    record_samples(proposal, ended)
    ledger.write_entries(timezone.now())
    assert LedgerEntry.objects.get().without
    content = page_of(approving, proposal)
    assert 'id="proof"' in content
    figures = approving.get(path_to(proposal, "proof.json")).json()["figures"]
    assert set(figures) == {"imbalance", "fullest", "replication_factor", "traffic"}
    traces = {trace["name"]: trace for trace in figures["fullest"]["data"]}
    assert {"measured", "without this plan", "approved", "expected for what was applied"} <= set(
        traces
    )
    known = [value for value in traces["without this plan"]["y"] if value is not None]
    assert known[-1] == pytest.approx(proposal.before["fullest"], abs=1e-4)
    assert traces["approved"]["y"] == [pytest.approx(proposal.predicted["fullest"])]


def test_requests_of_a_monitor_without_a_better_plan_are_one_row(
    viewing: Client, proposal: Proposal
) -> None:
    """The newest of those with one aim; the address shows each of them."""
    before = {"cluster": proposal.cluster, "planner": "placement", "requested_at": timezone.now()}
    fruitless = {"state": Proposal.State.NO_BETTER_PLAN, "requested_by": "watch"}
    rows = [
        Proposal.objects.create(**before, **fruitless, origin=origin, aims=[aim])
        for origin, aim in (
            ("watch", "imbalance"), ("watch", "imbalance"), ("watch", "traffic"),
            ("person", "imbalance"),
        )
    ]  # fmt: skip
    path = f"/clusters/{proposal.cluster.slug}/proposals/"
    with CaptureQueriesContext(connection) as sent:
        shown = {row["proposal"].pk: row for row in viewing.get(path).context["rows"]}
    pages = [query for query in sent if '"requested_at" DESC' in query["sql"]]
    assert len(pages) == 1, "only the rows that are shown are read"
    assert set(shown) == {proposal.pk, *(row.pk for row in rows[1:])}
    assert shown[rows[1].pk]["repeats"].count == 2
    assert len(viewing.get(f"{path}?fold=no").context["rows"]) == 5


@pytest.mark.parametrize("state", ["failed", "stale", "rejected", "superseded", "no better plan"])
def test_a_dead_end_offers_the_same_request_and_other_goals(
    operating: Client, proposal: Proposal, state: str
) -> None:
    judged = Judgement(GateCode.EMPTY, (), NextStep.NOTHING).to_json()
    judgement = judged if state == "no better plan" else {}
    Proposal.objects.filter(pk=proposal.pk).update(state=state, judgement=judgement)
    content = page_of(operating, proposal)
    assert content.count('id="request-again"') == 1
    assert "proposals/#request" in content
