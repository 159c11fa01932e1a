"""Whatever people, queries and crashes do in whatever order: every move once, every step accounted.

A state machine drives proposals of a real database through random verbs, drift, acknowledgements,
and processes that die at any statement of any transaction. After each of them the rows are looked
at as a whole.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid, WeirError
from controlplane.models import AuditEntry, Cluster, Execution, Node, Proposal, Query, Step
from controlplane.plans.plan import seal_of
from controlplane.proposals import computation, decisions, requests
from controlplane.proposals.executions import control, progression
from controlplane.queries.spec import QuerySpec
from controlplane.topology import nodes, placement, queries, rows, streams
from controlplane.topology.streams import StreamSpec
from tests.support import execution as driven
from tests.support.cluster import actor, replayed_table
from tests.support.execution import moves_of
from tests.support.nightly import NIGHTLY
from tests.support.policies import set_policy
from tests.support.schemas import REPORTS
from tests.support.texts import SUMMARY

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

_numbers = count()
STATES_WITH_MOVES = ("executing", "paused", "rolling back", "stopped", "done", "rolled back")


class Killed(BaseException):
    """The process is no more: nothing that it would have done afterwards happens."""


@contextmanager
def dying_at(statement: int) -> Iterator[None]:
    """Let the process die when it is about to send its n-th statement."""
    left = statement

    def send(execute: Callable[..., Any], *args: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return execute(*args)

    with suppress(Killed), connection.execute_wrapper(send):
        yield


@contextmanager
def overtaken_at(statement: int, act: Callable[[], Any]) -> Iterator[None]:
    """Let somebody else act before the n-th statement that is in no transaction."""
    left = statement

    def send(execute: Callable[..., Any], *args: Any) -> Any:
        nonlocal left
        if not connection.in_atomic_block:
            left -= 1
            if left == -1:
                with suppress(Conflict, Invalid):
                    act()
        return execute(*args)

    with connection.execute_wrapper(send):
        yield


class Life(RuleBasedStateMachine):
    """One cluster with people who may do anything."""

    def __init__(self) -> None:
        super().__init__()
        number = next(_numbers)
        self.by = actor("admin", f"admin-{number}")
        self.cluster = _cluster(self.by, f"c{number}")
        driven.scattered(self.by, self.cluster, 10)
        set_policy(self.cluster, cluster_moves=3, cooldown_s=0)
        self.batches = count(1)

    @rule()
    def ask(self) -> None:
        proposal = requests.request(self.by, self.cluster, "mms", {"nu": 0.5})
        computation.compute(proposal.pk)

    @rule(which=st.integers(0, 5), sealed=st.booleans())
    def approve(self, which: int, sealed: bool) -> None:
        self._to(which, lambda p: decisions.approve(self.by, p, p.seal if sealed else "0" * 64))

    @rule(which=st.integers(0, 5))
    def reject(self, which: int) -> None:
        self._to(which, lambda p: decisions.reject(self.by, p, "no"))

    @rule(which=st.integers(0, 5))
    def withdraw(self, which: int) -> None:
        self._to(which, lambda p: decisions.withdraw(self.by, p, "not yet"))

    @rule(which=st.integers(0, 5))
    def pause(self, which: int) -> None:
        self._to(which, lambda p: control.pause(self.by, p, "wait"))

    @rule(which=st.integers(0, 5))
    def resume(self, which: int) -> None:
        self._to(which, lambda p: control.resume(self.by, p))

    @rule(which=st.integers(0, 5), here=st.booleans())
    def stop(self, which: int, here: bool) -> None:
        stop = control.stop if here else control.finish_step
        self._to(which, lambda p: stop(self.by, p, "enough"))

    @rule(which=st.integers(0, 5))
    def roll_back(self, which: int) -> None:
        self._to(which, lambda p: control.roll_back(self.by, p, p.seal, "worse"))

    @rule(statement=st.integers(0, 60))
    def advance_and_die(self, statement: int) -> None:
        """A worker advances everything and is killed at some statement."""
        with dying_at(statement):
            for proposal in Proposal.objects.filter(cluster=self.cluster).order_by("id"):
                progression.advance(proposal.pk)

    @rule(statement=st.integers(0, 30), by=st.sampled_from(["worker", "pause", "stop", "back"]))
    def advance_and_be_overtaken(self, statement: int, by: str) -> None:
        """A worker was away for longer than its lease; meanwhile another one, or a person, acts."""
        act: dict[str, Callable[[Proposal], Any]] = {
            "worker": lambda p: progression.advance(p.pk),
            "pause": lambda p: control.pause(self.by, p, "wait"),
            "stop": lambda p: control.stop(self.by, p, "enough"),
            "back": lambda p: control.roll_back(self.by, p, p.seal, "worse"),
        }

        def overtake() -> None:
            self.time_passes()
            for proposal in Proposal.objects.filter(cluster=self.cluster, state="executing"):
                act[by](proposal)

        active = Proposal.objects.filter(cluster=self.cluster, state__in=Proposal.ACTIVE)
        with overtaken_at(statement, overtake):
            for proposal in active:
                progression.advance(proposal.pk)

    @rule()
    def advance(self) -> None:
        for proposal in Proposal.objects.filter(cluster=self.cluster).order_by("id"):
            progression.advance(proposal.pk)

    @rule(slow=st.booleans(), statement=st.one_of(st.none(), st.integers(0, 40)))
    def acknowledge(self, slow: bool, statement: int | None) -> None:
        """The pipeline goes on; the relay may die while it stores that, and reads it again."""
        step = Step.objects.filter(execution__cluster=self.cluster, state="published").first()
        if step is None:
            return
        p95 = 60_000.0 if slow else 200.0
        if statement is not None:
            with dying_at(statement):
                driven.batch(self.cluster, step, p95=p95)
            self.cluster.refresh_from_db()
        if Step.objects.filter(pk=step.pk, state="published").exists():
            driven.batch(self.cluster, step, p95=p95)

    @rule()
    def time_passes(self) -> None:
        """Leases of the dead expire, and delays are over."""
        past = timezone.now() - timedelta(seconds=1)
        open_ = Execution.objects.filter(cluster=self.cluster)
        open_.exclude(lease_owner="").update(lease_until=past)
        open_.exclude(not_before=None).update(not_before=past)

    @rule(which=st.integers(0, 20))
    def end_a_query(self, which: int) -> None:
        names = list(_running(self.cluster).order_by("id").values_list("name", flat=True))
        if len(names) > 4:
            queries.end(self.by, self.cluster, [names[which % len(names)]])
            placement.place_pending(self.cluster.pk)

    @rule(stream=st.integers(0, 3))
    def submit_a_query(self, stream: int) -> None:
        if _running(self.cluster).count() < 14:
            name = f"new{next(_numbers)}"
            queries.submit(self.by, self.cluster, QuerySpec(name, [f"s{stream}"], SUMMARY))
            placement.place_pending(self.cluster.pk)

    @rule(capacity=st.sampled_from([400.0, 500.0]))
    def change_a_capacity(self, capacity: float) -> None:
        node = Node.objects.get(cluster=self.cluster, index=0)
        nodes.configure(self.by, node, capacity=capacity)

    @invariant()
    def one_execution_at_most(self) -> None:
        active = Proposal.objects.filter(cluster=self.cluster, state__in=Proposal.ACTIVE)
        assert active.count() <= 1
        assert Step.objects.filter(execution__cluster=self.cluster, state="published").count() <= 1

    @invariant()
    def every_move_is_in_one_step(self) -> None:
        """Steps of a direction lie end to end, and reach as far as the execution says."""
        for execution in Execution.objects.filter(cluster=self.cluster):
            for direction, reached in (("forward", execution.done), ("back", execution.undone)):
                steps = execution.steps.filter(direction=direction).order_by("number")
                spans = list(steps.values_list("first", "stop"))
                starts = [first for first, _ in spans]
                assert starts == [0, *(stop for _, stop in spans)][: len(spans)]
                assert (spans[-1][1] if spans else 0) == reached

    @invariant()
    def the_history_leads_to_the_rows(self) -> None:
        """What was published, delta by delta, is where the tasks are."""
        assert replayed_table(self.cluster) == rows.current_table(self.cluster.pk)

    @invariant()
    def nothing_runs_that_was_not_approved_by_its_seal(self) -> None:
        for execution in Execution.objects.filter(cluster=self.cluster):
            proposal = execution.proposal
            assert proposal.snapshot_row is not None
            assert proposal.seal == seal_of(proposal.plan, proposal.snapshot_row.digest)
            approved = AuditEntry.objects.filter(
                action="proposal.approve", object=str(proposal), seal=proposal.seal
            )
            assert approved.exists()

    @invariant()
    def every_audit_chain_is_complete(self) -> None:
        """From computing to where the proposal is now, each row begins where the last one ended."""
        for proposal in Proposal.objects.filter(cluster=self.cluster):
            rows = AuditEntry.objects.filter(object=str(proposal)).exclude(
                action="proposal.request"
            )
            state = "computing"
            for row in rows.order_by("id"):
                assert row.before["state"] == state
                state = row.after["state"]
            assert state == proposal.state

    def _to(self, which: int, act: Callable[[Proposal], Any]) -> None:
        found = list(Proposal.objects.filter(cluster=self.cluster).order_by("-id")[:6])
        if found:
            with suppress(Conflict, Invalid):
                act(found[which % len(found)])

    def teardown(self) -> None:
        """In the end all that was begun can be ended: nothing is stuck."""
        stuck = Proposal.objects.filter(
            cluster=self.cluster, state__in=("computing", "approved", *Proposal.ACTIVE)
        )
        for _ in range(60):
            if not stuck.exists():
                break
            self.time_passes()
            self.advance()
            self.acknowledge(slow=False, statement=None)
            for proposal in Proposal.objects.filter(cluster=self.cluster, state="paused"):
                control.resume(self.by, proposal)
        assert not stuck.exists(), [(one.pk, one.state) for one in stuck]
        for check in (self.every_move_is_in_one_step, self.the_history_leads_to_the_rows,
                      self.every_audit_chain_is_complete):  # fmt: skip
            check()


def _cluster(by: Actor, slug: str) -> Cluster:
    cluster = Cluster.objects.create(slug=slug, name=slug, slots=4, splits=2, alpha=10.0)
    Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}", capacity=500.0)
        for index in range(4)
    )
    schema = REPORTS.to_json()
    specs = [StreamSpec(f"s{at}", schema=schema, declared_rate=at + 1.0) for at in range(4)]
    streams.register(by, cluster, specs)
    return cluster


def _running(cluster: Cluster) -> Any:
    return Query.objects.filter(cluster=cluster, state="running")


def _thorough(here: int, elsewhere: int) -> int:
    """Return how much is tried on SQLite, and on PostgreSQL, where a statement takes longer."""
    return here if connection.vendor == "sqlite" else elsewhere


def test_nothing_is_lost_doubled_or_stuck(redis_url: str) -> None:
    assert redis_url
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=_thorough(6, 4) if NIGHTLY else 3,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_process_that_dies_at_any_statement_leaves_a_step_or_none(
    approver: Actor, operator: Actor, sf: Cluster
) -> None:
    """Statements of beginning and publishing, one after the other."""
    driven.scattered(operator, sf)
    for statement in range(0, 80, _thorough(3, 5) if NIGHTLY else 20):
        proposal = driven.ready(approver, sf)
        if not moves_of(proposal):
            break
        with suppress(WeirError):
            decisions.approve(approver, proposal, proposal.seal)
        with dying_at(statement):
            progression.advance(proposal.pk)
        assert replayed_table(sf) == rows.current_table(sf.pk)
        Execution.objects.exclude(lease_owner="").update(lease_until=timezone.now())
        execution = driven.carried_out(proposal)
        assert execution.done == len(proposal.actions)
        control.roll_back(operator, proposal, proposal.seal, "again")
        driven.carried_out(proposal)
        assert proposal.state == "rolled back"
