"""Plans of any actions: stopped after any step and rolled back, the cluster is as before."""

from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.errors import Conflict
from controlplane.models import Cluster, Drop, Execution, Node, Proposal, Query, Step, Stream, Task
from controlplane.planning.computation import compute_plan
from controlplane.planning.execution_plan import StepLimits
from controlplane.planning.resolution import resolve
from controlplane.planning.snapshots import keep_snapshot, take_snapshot
from controlplane.planning.sources import MANUAL
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.proposals import decisions, ledger
from controlplane.proposals.executions import control, progression
from controlplane.proposals.executions.acknowledgement import EVENT_TIME_WAIT, finish_overdue
from controlplane.proposals.executions.action_status import Status, statuses, steps_of
from controlplane.topology.apply import TopologyChange, apply
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetNodeActive,
    SetSplitCount,
)
from controlplane.wire.routing.drop_rules import ALWAYS, INPUT, DropRule
from controlplane.wire.routing.query_actions import (
    MoveTasks,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from tests.support.cluster import placed, placed_split, small_cluster, telemetry
from tests.support.execution import batch, under_way
from tests.support.nightly import NIGHTLY
from tests.support.policies import set_policy

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases(daily="postgresql"),
]
# Objects by their place; the split query is the last.
QUERIES: Final = st.integers(0, 4)
STREAMS: Final = st.integers(0, 2)
NODES: Final = st.integers(0, 3)
ACTIONS: Final = st.lists(
    st.one_of(
        st.builds(lambda query, node: MoveTasks(query, ((node, 0, 1),)), QUERIES, NODES),
        st.builds(lambda task, node: MoveTasks(4, ((node, task, task + 1),)),
                  st.integers(0, 7), NODES),
        st.builds(AssignStream, STREAMS, st.integers(0, 3)),
        st.builds(AssignPartition, STREAMS, st.integers(0, 1), st.none() | st.integers(0, 3)),
        st.builds(SetKeyGrouping, st.just(4), st.sampled_from(["", '{"grouping":"partial_key"}'])),
        st.builds(lambda nodes: SetAggregators(4, tuple(nodes)),
                  st.lists(NODES, min_size=1, max_size=3, unique=True)),
        st.builds(lambda tasks: SetTaskCount(4, tasks), st.integers(4, 8)),
        st.builds(lambda node: SetTaskCount(4, 9, ((node, 8, 9),)), NODES),
        st.builds(SetCapacity, NODES, st.floats(1, 1e4), st.booleans()),
        st.builds(SetNodeActive, NODES, st.booleans()),
        st.builds(SetSplitCount, st.integers(4, 6)),
        st.builds(SetDropRule, STREAMS, st.just(INPUT),
                  st.none() | st.builds(DropRule.of, st.floats(0.01, 1))),
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip
LAW: Final = settings(
    max_examples=12 if NIGHTLY else 4, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@pytest.fixture
def cluster(operator: Actor) -> Cluster:
    """Four nodes, three streams, four queries of one task and one of eight."""
    cluster = small_cluster(operator, nodes=4, stream_count=3)
    placed(operator, cluster, {f"q{i}": [f"s{i % 3}"] for i in range(4)})
    placed_split(operator, cluster, "split", "key")
    set_policy(cluster, cluster_moves=8, tolerated_rates=100.0, tolerated_gain_loss=1.0)
    Cluster.objects.filter(pk=cluster.pk).update(desired="running")
    cluster.refresh_from_db()
    return cluster


def named(cluster: Cluster, actions: list[Action]) -> list[Action]:
    """Return the actions with ids of the cluster in place of places."""
    queries = list(cluster.queries.order_by("pk").values_list("pk", flat=True))
    streams = list(cluster.streams.order_by("pk").values_list("pk", flat=True))
    named: list[Action] = []
    for action in actions:
        if isinstance(action, MoveTasks):
            named.append(MoveTasks(queries[action.query], action.moves))
        elif isinstance(action, SetKeyGrouping | SetTaskCount | SetAggregators):
            named.append(replace(action, query=queries[action.query]))
        elif isinstance(action, AssignStream | AssignPartition):
            named.append(replace(action, stream=streams[action.stream]))
        elif isinstance(action, SetDropRule):
            named.append(SetDropRule(streams[action.stream], INPUT, action.rule))
        else:
            named.append(action)
    return named


def proposed(by: Actor, cluster: Cluster, actions: list[Action]) -> Proposal:
    """Return a ready proposal of these actions, as a person would have composed it."""
    row = keep_snapshot(take_snapshot(cluster.pk, cluster.nu))
    plan = resolve(row.value(), possible(row.value(), actions))
    limits = StepLimits(8, 8, 1e9)
    computed = compute_plan(row, MANUAL, plan, limits, 2.0)
    return Proposal.objects.create(
        cluster=cluster, planner=MANUAL, algorithm="moves", state="ready", snapshot_row=row,
        requested_by=by.name, requested_at=timezone.now(), **computed.columns(),
    )  # fmt: skip


def possible(snapshot: ClusterSnapshot, actions: list[Action]) -> list[Action]:
    """Return the actions without those of tasks that the ones before removed or did not add."""
    chosen: list[Action] = []
    for action in actions:
        with suppress(Conflict):
            resolve(snapshot, [*chosen, action])
            chosen.append(action)
    return chosen


def topology(cluster: Cluster) -> list[Any]:
    """Return what the rows hold of a topology."""
    cluster.refresh_from_db()
    return [
        cluster.splits,
        list(
            Query.objects.order_by("pk").values_list(
                "pk", "task_count", "key_grouping", "aggregator__index", "more_aggregators"
            )
        ),
        list(Task.objects.order_by("query", "index").values_list("query", "index", "node__index")),
        list(Stream.objects.order_by("pk").values_list("pk", "split", "partition_splits")),
        list(Node.objects.order_by("index").values_list("index", "capacity", "emulated", "active")),
        list(Drop.objects.order_by("stream", "query").values_list("stream", "query", "rule")),
    ]


def advanced(proposal: Proposal) -> bool:
    """Let the pipeline acknowledge the step under way; return whether there was one."""
    step = under_way(proposal)
    if step is None:
        return False
    batch(Cluster.objects.get(pk=proposal.cluster_id), step)
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    return True


@given(ACTIONS, st.integers(0, 6))
@example([MoveTasks(4, ((0, 2, 3),)), MoveTasks(4, ((3, 2, 3),))], 0)
@LAW
def test_a_plan_stopped_after_any_step_and_rolled_back_ends_where_it_began(
    approver: Actor, operator: Actor, cluster: Cluster, actions: list[Action], steps: int
) -> None:
    with transaction.atomic():
        before = topology(cluster)
        proposal = proposed(approver, cluster, named(cluster, actions))
        if proposal.actions:
            decisions.approve(approver, proposal, proposal.seal)
            progression.advance(proposal.pk)
            proposal.refresh_from_db()
            for _ in range(steps):
                if not advanced(proposal):
                    break
            control.roll_back(operator, proposal, proposal.seal, "back")
            progression.advance(proposal.pk)
            while advanced(proposal):
                pass
            proposal.refresh_from_db()
            assert proposal.state == "rolled back"
            found = {one.status for one in statuses(proposal, steps_of(proposal))}
            assert found <= {Status.REVERTED, Status.NOT_APPLIED}
        assert topology(cluster) == before
        transaction.set_rollback(True)


def test_what_something_else_changed_makes_the_rest_stale(
    approver: Actor, cluster: Cluster
) -> None:
    """An action whose object is another than when it was planned is not applied."""
    actions: list[Action] = [AssignStream(0, 1), AssignStream(1, 2), SetSplitCount(5)]
    given = named(cluster, actions)
    proposal = proposed(approver, cluster, given)
    stream = cluster.streams.order_by("pk")[1]
    apply(cluster, [AssignStream(stream.pk, 3)], TopologyChange("somebody else"))
    with pytest.raises(Exception, match="1 actions"):
        decisions.approve(approver, proposal, proposal.seal)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.drift["obstacles"]) == ("stale", {"changed": 1})
    assert proposal.review["applicable"] == len(proposal.actions) - 1


def test_objects_that_are_gone_are_skipped_and_counted_apart(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    """Approved, expected for what was applied, and measured differ by what was skipped."""
    actions: list[Action] = [MoveTasks(0, ((3, 0, 1),)), MoveTasks(1, ((3, 0, 1),))]
    proposal = proposed(approver, cluster, named(cluster, actions))
    decisions.approve(approver, proposal, proposal.seal)
    gone = proposal.plan[1].action
    assert isinstance(gone, MoveTasks)
    Query.objects.filter(pk=gone.query).update(state="ended")
    Task.objects.filter(query=gone.query).delete()
    progression.advance(proposal.pk)
    while advanced(proposal):
        pass
    proposal.refresh_from_db()
    assert proposal.state == "done"
    step = Step.objects.get(execution__proposal=proposal)
    assert (step.applied, step.skipped) == (1, [[1, "ended"]])
    finished = Execution.objects.get(proposal=proposal).finished_at
    assert finished is not None
    assert ledger.write_entries(finished + ledger.LATEST) == 1
    entry = proposal.ledger
    assert (entry.applied, entry.skipped) == (1, 1)
    assert entry.approved["imbalance"] == pytest.approx(proposal.after["imbalance"])
    assert entry.expected["imbalance"] != pytest.approx(entry.approved["imbalance"])


def window_drop(by: Actor, cluster: Cluster) -> tuple[Proposal, Stream]:
    """Return a proposal to drop half of the windows of a stream."""
    stream = cluster.streams.order_by("pk")[0]
    rule = DropRule(((ALWAYS, 0.5),), 0, 1000, 1000)
    return proposed(by, cluster, [SetDropRule(stream.pk, INPUT, rule)]), stream


def reported(cluster: Cluster, step: Step, event_ms: int) -> None:
    """Let the pipeline report a batch with the version of a step, up to an event time."""
    assert step.version is not None
    number = 1 + (Cluster.objects.get(pk=cluster.pk).last_batch or 0)
    row = telemetry(number, 1_800_000_000_000 + 1000 * number, step.version.version)
    ingestion.record(cluster, [row | {"event_ms": event_ms}])
    cluster.refresh_from_db()


def test_a_drop_of_windows_waits_for_its_event_time(
    approver: Actor, operator: Actor, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is scheduled when it is published, and acknowledged once the event time has passed."""
    monkeypatch.setattr("controlplane.topology.drop_rules.ahead_of", lambda *_: 10_500)
    proposal, stream = window_drop(approver, cluster)
    decisions.approve(approver, proposal, proposal.seal)
    progression.advance(proposal.pk)
    step = under_way(proposal)
    assert step is not None
    assert step.effective_at == 11_000
    assert Drop.objects.get(stream=stream).value.steps == ((11_000, 0.5),)
    for event_ms, left in ((10_999, True), (11_000, False)):
        reported(cluster, step, event_ms)
        assert (under_way(proposal) is not None) == left
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "done"
    monkeypatch.setattr("controlplane.topology.drop_rules.ahead_of", lambda *_: 20_000)
    control.roll_back(operator, proposal, proposal.seal, "back")
    progression.advance(proposal.pk)
    assert Drop.objects.get(stream=stream).value.steps == ((11_000, 0.5), (21_000, 0.0))


def test_a_stream_without_records_does_not_hold_a_step_up(
    approver: Actor, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.topology.drop_rules.ahead_of", lambda *_: 10_500)
    proposal, _ = window_drop(approver, cluster)
    decisions.approve(approver, proposal, proposal.seal)
    progression.advance(proposal.pk)
    step = under_way(proposal)
    assert step is not None
    reported(cluster, step, 5)
    step = under_way(proposal)
    assert step is not None
    assert not finish_overdue(step)
    Step.objects.filter(pk=step.pk).update(published_at=timezone.now() - EVENT_TIME_WAIT)
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "done"
