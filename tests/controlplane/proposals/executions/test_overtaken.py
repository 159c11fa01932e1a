"""A worker that was away for longer than its lease comes back: what others did meanwhile stands.

It is away between any two of its statements that no transaction holds together.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count, pairwise
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Conflict
from controlplane.models import Cluster, Execution, Node, Proposal, Step
from controlplane.proposals import decisions
from controlplane.proposals.executions import control, progression
from controlplane.topology import rows, streams
from controlplane.topology.streams import StreamSpec
from tests.support.cluster import replayed_table
from tests.support.execution import batch, carried_out, ready, scattered, under_way
from tests.support.nightly import NIGHTLY
from tests.support.policies import set_policy
from tests.support.schemas import REPORTS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

Act = Callable[[Actor, Proposal], Any]
OTHERS: dict[str, Act] = {
    "another worker": lambda by, proposal: progression.advance(proposal.pk),
    "a withdrawal": lambda by, proposal: decisions.withdraw(by, proposal, "not yet"),
    "a pause": lambda by, proposal: control.pause(by, proposal, "wait"),
    "a stop": lambda by, proposal: control.stop(by, proposal, "enough"),
    "a roll-back": lambda by, proposal: control.roll_back(by, proposal, proposal.seal, "no"),
}


@contextmanager
def away_before(statement: int, meanwhile: Callable[[], Any]) -> Iterator[list[int]]:
    """Let somebody else act before the n-th statement outside transactions; yields [n] then."""
    seen, came = count(), list[int]()

    def send(execute: Callable[..., Any], *args: Any) -> Any:
        if not connection.in_atomic_block and next(seen) == statement:
            came.append(statement)
            meanwhile()
        return execute(*args)

    with connection.execute_wrapper(send):
        yield came


def approved(by: Actor, number: int) -> Proposal:
    """Return a proposal that may begin."""
    cluster = Cluster.objects.create(slug=f"c{number}", name="C", slots=4, splits=2, alpha=10.0)
    Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"n{index}", capacity=500.0) for index in range(4)
    )
    schema = REPORTS.to_json()
    specs = [StreamSpec(f"s{at}", schema=schema, declared_rate=at + 1.0) for at in range(3)]
    streams.register(by, cluster, specs)
    set_policy(cluster, cluster_moves=2, cooldown_s=0)
    proposal = ready(by, scattered(by, cluster, 8))
    return decisions.approve(by, proposal, proposal.seal)


def waiting(by: Actor, number: int) -> Proposal:
    """Return an execution of which a step has arrived, and the next one may begin."""
    proposal = approved(by, number)
    progression.advance(proposal.pk)
    step = under_way(proposal)
    assert step is not None
    batch(proposal.cluster, step)
    proposal.refresh_from_db()
    return proposal


def check(proposal: Proposal) -> None:
    """Steps lie end to end and reach as far as the execution says; the history is what stands."""
    execution = Execution.objects.get(proposal=proposal)
    for direction, reached in (("forward", execution.done), ("back", execution.undone)):
        steps = execution.steps.filter(direction=direction).order_by("number")
        spans = [(0, 0), *steps.values_list("first", "stop")]
        assert all(stop == first for (_, stop), (first, _) in pairwise(spans))
        assert spans[-1][1] == reached
    assert execution.steps.filter(state="published").count() <= 1
    assert not any(skipped for skipped in execution.steps.values_list("skipped", flat=True))
    cluster = proposal.cluster.pk
    assert replayed_table(proposal.cluster) == rows.current_table(cluster)


def overtaken(by: Actor, proposal: Proposal, statement: int, act: Act) -> bool:
    """Advance it and be away before a statement; tell whether there was such a statement."""
    steps = Step.objects.filter(execution__proposal=proposal)
    then: list[int] = []

    def meanwhile() -> None:
        past = timezone.now() - timedelta(seconds=1)
        Execution.objects.exclude(lease_owner="").update(lease_until=past)
        with suppress(Conflict):
            act(by, proposal)
        then.append(steps.count())

    with away_before(statement, meanwhile) as came:
        progression.advance(proposal.pk)
    proposal.refresh_from_db()
    if came and proposal.state in ("paused", "stopped"):
        assert steps.count() == then[0], "nothing is published after that"
    return bool(came)


# Each is tried where it finds the proposal in a state that allows it.
@pytest.mark.parametrize(
    ("stands", "other"),
    [
        (approved, "another worker"), (approved, "a withdrawal"), (waiting, "another worker"),
        (waiting, "a pause"), (waiting, "a stop"), (waiting, "a roll-back"),
    ],
)  # fmt: skip
def test_what_others_did_meanwhile_stands(
    approver: Actor, stands: Callable[[Actor, int], Proposal], other: str
) -> None:
    """At no statement does a move happen twice, or after somebody has said to wait."""
    # The others are known by their verbs; PostgreSQL shows that its locks do the same.
    # By night at every statement, by day at every eighth.
    for statement in count(0, 1 if NIGHTLY else 8):
        proposal = stands(approver, statement)
        came = overtaken(approver, proposal, statement, OTHERS[other])
        if not came:
            break
        if proposal.state == "ready":
            assert not Execution.objects.filter(proposal=proposal).exists()
            continue
        if Execution.objects.filter(proposal=proposal).exists():
            check(proposal)
        if proposal.state == "paused":
            control.resume(approver, proposal)
        carried_out(proposal)
        assert proposal.state in ("done", "stopped", "rolled back")
        check(proposal)
    assert statement > 5, "it was away at every one of several statements"
