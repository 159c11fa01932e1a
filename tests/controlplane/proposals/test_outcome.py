"""The outcome of a plan by the policy's limits, and the plans of goals."""

import math
from typing import Any

import pytest
from django.utils import timezone

from algorithms.placement.improve import Goal
from controlplane.access.roles import Actor, Automatic
from controlplane.errors import Invalid, Unusable
from controlplane.models import Cluster, Proposal
from controlplane.planning.adapter import PlannerResult
from controlplane.planning.plan_summary import PlanSummary
from controlplane.planning.sources import plan_for
from controlplane.policies.gate import Judgement
from controlplane.policies.grades import Grade
from controlplane.policies.store import policy_of
from controlplane.proposals import computation, requests
from controlplane.proposals.checks import CheckCode, checks_of
from controlplane.proposals.outcome import MeasureStatus, measure_status, outcome_of
from controlplane.proposals.staleness import EVERY, review_waiting
from controlplane.topology.apply import TopologyChange, apply
from controlplane.wire.routing.query_actions import MoveTasks
from tests.support.execution import ready, scattered
from tests.support.policies import set_policy
from tests.support.watching import reachable


@pytest.mark.parametrize(
    ("now", "after", "limit", "status"),
    [
        (0.4, 0.1, 0.2, MeasureStatus.RESOLVED),
        (0.1, 0.2, 0.2, MeasureStatus.KEPT),
        (0.4, 0.3, 0.2, MeasureStatus.REMAINS),
        (0.4, 0.4, 0.2, MeasureStatus.REMAINS),
        (0.4, 0.5, 0.2, MeasureStatus.WORSENED),
        (0.2, 0.21, 0.2, MeasureStatus.WORSENED),
        (0.4, 0.1, None, MeasureStatus.NO_LIMIT),
        (None, 0.1, 0.2, MeasureStatus.NO_LIMIT),
    ],
)
def test_a_limit_decides_what_a_plan_does_to_a_measure(
    now: float | None, after: float, limit: float | None, status: MeasureStatus
) -> None:
    assert measure_status(now, after, limit) is status


@pytest.mark.django_db(transaction=True)
def test_the_policy_decides_the_grade(operator: Actor, sf: Cluster) -> None:
    """The same plan is good, amber or red by the limits."""
    proposal = ready(operator, scattered(operator, sf))
    reachable(sf, 1.0)
    factor = proposal.after["replication_factor"] - 1

    def grade(**limits: float) -> Grade:
        set_policy(sf, **limits)
        return outcome_of(proposal, PlanSummary.from_json(proposal.summary)).grade

    assert grade(watch_imbalance=1.0, watch_replication=factor + 0.5) is Grade.GOOD
    proposal.after["replication_factor"] = 1.01
    assert grade(watch_imbalance=1.0, watch_replication=0.0) is Grade.WARN
    proposal.after["imbalance"] = proposal.before["imbalance"] + 0.1
    worse = grade(watch_imbalance=proposal.before["imbalance"] + 0.05, watch_replication=0.5)
    assert worse is Grade.BAD


@pytest.mark.django_db(transaction=True)
def test_a_plan_keeps_the_limits_of_its_computation(operator: Actor, sf: Cluster) -> None:
    """While it waits, its limits are those of now."""
    reachable(sf, 1.0)
    proposal = ready(operator, scattered(operator, sf))
    reachable(sf, 2.0)
    waiting = outcome_of(proposal, PlanSummary()).of("replication_factor")
    assert waiting is not None
    assert waiting.limit == pytest.approx(2.4)
    assert waiting.limit_then == pytest.approx(1.2)
    proposal.state = Proposal.State.REJECTED
    ended = outcome_of(proposal, PlanSummary()).of("replication_factor")
    assert ended is not None
    assert ended.limit == pytest.approx(1.2)
    assert ended.limit_then is None


@pytest.mark.django_db(transaction=True)
def test_a_check_fails_beyond_its_limit(operator: Actor, sf: Cluster) -> None:
    proposal = ready(operator, scattered(operator, sf))
    review_waiting(timezone.now() + EVERY)
    proposal.refresh_from_db()
    set_policy(sf, pause_ms=1)
    outcome = outcome_of(proposal, PlanSummary.from_json(proposal.summary))
    checks = {row.code: row for row in checks_of(proposal, outcome, policy_of(sf))}
    assert not checks[CheckCode.PAUSE].passed
    limits = [row for row in checks_of(proposal, outcome, policy_of(sf)) if row.code == "limit"]
    assert {(row.number, row.limit) for row in limits} == {
        (row.expected, row.limit) for row in outcome.measures if row.limit is not None
    }
    assert (checks[CheckCode.PAUSE].number, checks[CheckCode.PAUSE].limit) == (
        proposal.predicted["pause_ms"], 1,
    )  # fmt: skip
    assert checks[CheckCode.RATES].passed
    assert checks[CheckCode.GAIN].passed


@pytest.mark.django_db(transaction=True)
def test_a_limit_that_stays_exceeded_fails_its_check(operator: Actor, sf: Cluster) -> None:
    """The check assesses the state after the plan, whatever it was before."""
    proposal = ready(operator, scattered(operator, sf))
    proposal.before |= {"fullest": 1.09}
    proposal.after |= {"fullest": 1.07}
    outcome = outcome_of(proposal, PlanSummary.from_json(proposal.summary))
    failed = [row for row in checks_of(proposal, outcome, policy_of(sf)) if not row.passed]
    assert [(row.code, row.limit) for row in failed] == [(CheckCode.LIMIT, 1.0)]


@pytest.mark.django_db(transaction=True)
def test_a_goal_is_requested_with_its_parameters_and_names_its_measure(
    operator: Actor, sf: Cluster
) -> None:
    with pytest.raises(Unusable):
        requests.request_for_goal(operator, sf, Goal.EVEN)
    scattered(operator, sf)
    rows: dict[Goal, Proposal] = {
        goal: requests.request_for_goal(operator, sf, goal) for goal in Goal
    }
    assert {row.algorithm for row in rows.values()} == {"improve"}
    assert all(row.parameters["goal"] == goal for goal, row in rows.items())
    assert {goal: row.aims for goal, row in rows.items()} == {
        Goal.REPAIR: ["limits"],
        Goal.TRAFFIC: ["traffic"],
        Goal.EVEN: ["imbalance"],
        Goal.FEW_MOVES: ["limits"],
    }
    with pytest.raises(Invalid):
        requests.request_for_goal(operator, sf, "magic")


@pytest.mark.django_db(transaction=True)
def test_a_better_plan_begins_at_a_wider_limit(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of the least of three streams on two nodes keep four nodes even."""
    monkeypatch.setattr(computation, "SEARCH_S", math.inf)
    cluster = scattered(operator, sf)
    hosts = ((0, 1), (2, 2), (3, 3))
    numbers = {query: int(query.name[1:]) for query in cluster.queries.all()}
    moves = [
        MoveTasks(query.pk, ((hosts[number % 3][number % 2], 0, 1),))
        for query, number in numbers.items()
    ]
    apply(cluster, moves, TopologyChange("even"))
    reachable(cluster, 1.0)
    # Streams of 1, 2 and 3 records/s, on nodes of 500.
    set_policy(cluster, watch_imbalance=0.0026, watch_replication=0.05)
    proposal = requests.request_for_goal(operator, cluster, Goal.REPAIR)
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == Proposal.State.NO_BETTER_PLAN, proposal.error
    judgement = Judgement.stored(proposal.judgement)
    assert judgement is not None
    assert judgement.better is not None
    assert (judgement.better.is_limit, judgement.better.value) == (True, 0.05)
    assert judgement.better.after == pytest.approx(1.0)
    again = requests.request_again(operator, proposal, better=True)
    assert again.parameters == proposal.parameters, "people change limits"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_monitor", [True, False])
def test_a_monitor_takes_the_slack_from_which_a_better_plan_begins(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch, *, is_monitor: bool
) -> None:
    """People, who choose the slack themselves, are told it."""
    cluster = scattered(operator, sf)

    def from_forty_percent(*request: Any) -> PlannerResult:
        result = plan_for(*request)
        return result if request[2]["nu"] >= 0.4 else PlannerResult([], {})

    monkeypatch.setattr("controlplane.proposals.computation.plan_for", from_forty_percent)
    actor = Automatic("watch") if is_monitor else operator
    proposal = requests.request(actor, cluster, "mms", {"nu": 0.1}, planner="placement")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    judgement = Judgement.stored(proposal.judgement)
    if is_monitor:
        assert (proposal.state, proposal.parameters["nu"], judgement) == ("ready", 0.4, None)
    else:
        assert judgement is not None
        assert judgement.better is not None
        assert (judgement.better.parameter, judgement.better.value) == ("nu", 0.4)
        assert (proposal.state, proposal.parameters["nu"]) == ("no better plan", 0.1)
