"""The filter text of actions: numbers, words and names, alternatives and exclusions."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Proposal, Stream
from controlplane.pagination.filter_text import BadFilter
from controlplane.plans.plan import OtherAction, PlannedAction, TaskMove
from controlplane.proposals.executions.action_filter import FIELDS, matching_places
from controlplane.proposals.executions.action_status import ActionStatus, Status
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetNodeActive,
)
from controlplane.wire.routing.drop_rules import DropRule
from controlplane.wire.routing.query_actions import SetTaskCount
from tests.support.cluster import placed

pytestmark = pytest.mark.django_db
STATUSES = [
    ActionStatus(Status.APPLIED, 1), ActionStatus(Status.SKIPPED, 1, "ended"),
    ActionStatus(Status.WAITING, None, "changed"), ActionStatus(Status.WAITING),
    ActionStatus(Status.WAITING), ActionStatus(Status.APPLYING, 2), ActionStatus(Status.WAITING),
]  # fmt: skip


@pytest.fixture
def proposal(operator: Actor, sf: Cluster) -> Proposal:
    """Return a plan of seven actions, which has moves of two queries first."""
    alpha, beta = placed(operator, sf, {"alpha": ["s0"], "beta": ["s1"]})
    stream = Stream.objects.get(cluster=sf, name="s1").pk
    actions: list[PlannedAction] = [
        TaskMove(alpha.pk, 0, 1, 2, 500), TaskMove(beta.pk, 0, 2, 0, 10_000),
        OtherAction(AssignStream(stream, 1), ()), OtherAction(SetTaskCount(beta.pk, 4), ()),
        OtherAction(SetCapacity(3, 5.0, emulated=False), ()),
        OtherAction(SetDropRule(stream, alpha.pk, DropRule.of(0.5)), ()),
        OtherAction(SetNodeActive(5, active=True), ()),
    ]  # fmt: skip
    return Proposal(cluster=sf, actions=[action.row() for action in actions])


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("", [0, 1, 2, 3, 4, 5, 6]),
        ("node:2", [0, 1]), ("node:3", [4]), ("node:5", [6]), ("node:0,3", [1, 4]),
        ("node>4", [6]), ("from:1", [0]), ("from:2", [1]), ("to:2", [0]), ("to:0", [1]),
        ("bytes>500", [1]), ("bytes>=500", [0, 1]), ("bytes<500", [2, 3, 4, 5, 6]),
        ("bytes<=500", [0, 2, 3, 4, 5, 6]), ("bytes=500", [0]), ("-bytes:0", [0, 1]),
        ("kind:move_tasks", [0, 1]), ("kind=assign_stream", [2]),
        ("-kind:move_tasks,assign_stream", [3, 4, 5, 6]),
        ("query:alpha", [0, 5]), ("query:bet", [1, 3]), ("query:a", [0, 1, 3, 5]),
        ("stream:s1", [2, 5]), ("stream:alpha", []), ("s1", [2, 5]), ("beta", [1, 3]),
        ("nothing", []),
        ("status:applied", [0]), ("status:skipped", [1, 2]), ("status:waiting", [3, 4, 6]),
        ("code:ended", [1]), ("-code:ended,changed", [0, 3, 4, 5, 6]),
        ("status:skipped node:2", [1]), ("node:2 -query:alpha", [1]),
    ],
)  # fmt: skip
def test_a_text_has_its_actions(proposal: Proposal, text: str, places: list[int]) -> None:
    assert list(matching_places(proposal, STATUSES, text)) == places


def test_names_are_those_of_the_cluster(proposal: Proposal) -> None:
    proposal.cluster = Cluster.objects.create(slug="other", name="Other")
    assert list(matching_places(proposal, STATUSES, "alpha")) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("planet:5", "unknown_field"), ("node:north", "value"), ("node:", "value"),
        ("kind>move_tasks", "operator"), ("status<applied", "operator"),
    ],
)  # fmt: skip
def test_a_term_that_cannot_be_read_is_named_by_its_place(
    proposal: Proposal, text: str, fault: str
) -> None:
    with pytest.raises(BadFilter) as refused:
        matching_places(proposal, STATUSES, f"beta {text}")
    data = refused.value.data
    assert (data["fault"], data["start"], data["end"]) == (fault, 5, 5 + len(text))


def test_each_field_can_be_used(proposal: Proposal) -> None:
    for field in FIELDS:
        assert matching_places(proposal, STATUSES, f"{field}:1") is not None
