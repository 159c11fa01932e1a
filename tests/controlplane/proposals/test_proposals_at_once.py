"""Two people, or two workers, at the same moment: one wins, and the other is told."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from controlplane.access.roles import Actor
from controlplane.errors import Busy, Conflict
from controlplane.models import (
    AuditEntry,
    Cluster,
    Execution,
    Node,
    Proposal,
    Query,
    RoutingVersion,
)
from controlplane.proposals import decisions, requests
from controlplane.proposals.executions import control, progression
from tests.support.cluster import actor
from tests.support.execution import batch, begun, ready, under_way

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases(daily="postgresql"),
]

Work = Callable[[], Any]
# A race that is lost in one of so many is found.
ROUNDS = 5


def at_once(*work: Work) -> list[Any]:
    """Return what each gives or the refusal it raises, all begun at one moment."""
    barrier = Barrier(len(work))

    def one(call: Work) -> Any:
        connection.ensure_connection()
        barrier.wait(10)
        try:
            return call()
        except Conflict as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(len(work)) as pool:
        begun_ = [pool.submit(one, call) for call in work]
        return [done.result(30) for done in begun_]


def copy_of(proposal: Proposal) -> Proposal:
    """Return the row as another request has read it."""
    return Proposal.objects.select_related("cluster").get(pk=proposal.pk)


def refusals(answers: list[Any]) -> list[Conflict]:
    return [one for one in answers if isinstance(one, Conflict)]


def test_of_two_approvers_one_wins_and_the_other_is_told(approver: Actor, cluster: Cluster) -> None:
    other = actor("approver", "b-approver")
    for _ in range(ROUNDS):
        proposal = ready(approver, cluster)
        mine, theirs = copy_of(proposal), copy_of(proposal)
        answers = at_once(
            partial(decisions.approve, approver, mine, mine.seal),
            partial(decisions.approve, other, theirs, theirs.seal),
        )
        (refused,) = refusals(answers)
        assert refused.code == "not_allowed"
        assert refused.data == {"state": "approved", "allowed": ["begin", "withdraw"]}
        proposal.refresh_from_db()
        winner = approver if answers[1] is refused else other
        assert (proposal.state, proposal.approved_by) == ("approved", winner.name)
        noted = AuditEntry.objects.get(action="proposal.approve", object=str(proposal))
        assert noted.actor == winner.name
        decisions.withdraw(approver, proposal, "the next round")
        decisions.reject(approver, proposal, "the next round")


def test_approving_and_rejecting_exclude_each_other(approver: Actor, cluster: Cluster) -> None:
    other = actor("approver", "b-approver")
    for _ in range(ROUNDS):
        proposal = ready(approver, cluster)
        mine, theirs = copy_of(proposal), copy_of(proposal)
        answers = at_once(
            partial(decisions.approve, approver, mine, mine.seal),
            partial(decisions.reject, other, theirs, "no"),
        )
        (refused,) = refusals(answers)
        proposal.refresh_from_db()
        assert proposal.state == ("rejected" if answers[0] is refused else "approved")
        assert refused.data["state"] == proposal.state
        if proposal.state == "approved":
            decisions.withdraw(approver, proposal, "the next round")
            decisions.reject(approver, proposal, "the next round")


def test_workers_that_are_asked_at_once_publish_each_step_once(
    approver: Actor, cluster: Cluster
) -> None:
    """Beat, relay and a retry all ask; whoever comes second finds it done."""
    proposal = ready(approver, cluster)
    decisions.approve(approver, proposal, proposal.seal)
    before = RoutingVersion.objects.count()
    for number in range(1, 4):
        at_once(*[partial(progression.advance, proposal.pk)] * 3)
        step = under_way(proposal)
        if step is None:
            # All three met at the lease: the next who asks does it.
            progression.advance(proposal.pk)
            step = under_way(proposal)
        assert step is not None
        assert step.number == number
        assert RoutingVersion.objects.count() == before + number
        batch(cluster, step)
    assert Execution.objects.count() == 1


def test_of_two_executions_of_a_cluster_one_begins(approver: Actor, cluster: Cluster) -> None:
    first, second = ready(approver, cluster), ready(approver, cluster)
    # About nothing that the first one moves, or it would be superseded.
    Proposal.objects.filter(pk=second.pk).update(
        actions=[], before={}, after={}, state="approved", approved_by="x"
    )
    decisions.approve(approver, first, first.seal)
    at_once(partial(progression.advance, first.pk), partial(progression.advance, second.pk))
    states = sorted(Proposal.objects.values_list("state", flat=True))
    # The one that has no move is done as soon as it begins, and makes room.
    assert states in (["approved", "executing"], ["approved", "done"], ["done", "executing"])


def test_stopping_and_pausing_exclude_each_other(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    """Stopped for good is not undone by a pause that was clicked in the same moment."""
    proposal = begun(approver, cluster)
    mine, theirs = copy_of(proposal), copy_of(proposal)
    answers = at_once(
        partial(control.stop, approver, mine, "enough"),
        partial(control.pause, operator, theirs, "a call"),
    )
    proposal.refresh_from_db()
    # A pause that came first can still be stopped.
    assert proposal.state == "stopped"
    assert len(refusals(answers)) <= 1
    assert not isinstance(answers[0], Conflict)


def test_concurrent_requests_of_a_user_on_several_clusters_share_one_limit(
    operator: Actor, cluster: Cluster, settings: Any
) -> None:
    settings.MAX_REQUESTS_PER_USER = 1
    others = [Cluster.objects.create(slug=slug, name=slug) for slug in ("nyc", "la")]
    rivals = [cluster, *others]
    for other in others:
        Node.objects.create(cluster=other, index=0, name="node 0")
        query = Query.objects.filter(cluster=cluster)[0]
        query.pk, query.cluster = None, other
        query.save()
    for _ in range(ROUNDS):
        answers = at_once(*(partial(_requested, operator, rival) for rival in rivals))
        assert sorted(answers) == ["", "too_many_requests", "too_many_requests"]
        Proposal.objects.all().delete()


def test_concurrent_equal_requests_of_a_user_are_one(operator: Actor, cluster: Cluster) -> None:
    """Only the first one has an entry in the audit log: the other changes nothing."""
    for rounds in range(1, ROUNDS + 1):
        answers = at_once(*[partial(_requested, operator, cluster)] * 3)
        assert answers == [""] * 3
        assert Proposal.objects.count() == 1
        assert AuditEntry.objects.filter(action="proposal.request").count() == rounds
        Proposal.objects.all().delete()


def _requested(by: Actor, cluster: Cluster) -> str:
    """Request a plan; return the code of the refusal, "" for none."""
    try:
        requests.request(by, cluster, "mms", {"nu": 0.1})
    except Busy as refused:
        return refused.code
    return ""
