"""Shapes of proposals in the API's bodies."""

from collections.abc import Mapping
from typing import Any, Final

from ninja import Schema
from pydantic import Field

from algorithms.vocabulary import ParameterField
from controlplane.api.common.derived import below, columns_of, fields_of
from controlplane.api.common.schemas import ListOut, PageOut, ReasonIn
from controlplane.api.common.security import caller
from controlplane.executions import verbs
from controlplane.executions.action_status import ActionRow, ActionStatus
from controlplane.models import Proposal
from controlplane.planning.action_text import ActionText
from controlplane.planning.measures import Measure
from controlplane.plans.proposal_states import Verb
from controlplane.policies.auto_approval import PolicyDecision
from controlplane.proposals.drift import Drift


class ProposalIn(Schema):
    """Which planner and algorithm, and its parameters; empty is the planner's default."""

    planner: str = Field("", max_length=30)
    algorithm: str = Field("", max_length=30)
    parameters: dict[str, Any] = Field(default_factory=dict)


class ReasonedIn(Schema):
    """Why it is done; kept in the audit log."""

    reason: str = Field(max_length=2000)


class SealIn(ReasonIn):
    """The seal names exactly the actions in their order, and the snapshot they come from."""

    seal: str = Field(max_length=64)


class SealedReasonIn(ReasonedIn):
    """The seal of the actions that are to be reverted, and why."""

    seal: str = Field(max_length=64)


# What the body of a verb holds, by whether the table asks for the seal and for a reason.
BODIES: Final[Mapping[tuple[bool, bool], type[Schema]]] = {
    (False, False): ReasonIn,
    (False, True): ReasonedIn,
    (True, False): SealIn,
    (True, True): SealedReasonIn,
}


class VerbOut(Schema):
    """A verb that the caller may apply now: POST it below the proposal's address."""

    verb: str = below("path")
    about: str
    seal: bool
    reason: bool


class AllowedOut(Schema):
    """What the caller may do with a proposal in its state; request_again makes another one.

    auto_approval: the policy's decision on a ready proposal, null for others.
    """

    state: str
    verbs: list[VerbOut]
    request_again: bool
    auto_approval: PolicyDecision | None


_VALUES: Final = dict[str, Any]


class ProposalRow(
    columns_of(  # type: ignore[misc]
        Proposal,
        "id state progress planner algorithm origin base requested_by requested_at four_eyes"
        " approved_by approved_at decided_by decided_at snapshot_version seal error",
        parameters=_VALUES,
        before=_VALUES,
        after=_VALUES,
        predicted=_VALUES,
        rollback_cost=_VALUES,
        bounds=dict[str, float],
        drift=_VALUES,
        review=_VALUES,
    )
):
    """A proposal as lists have it.

    before, after: measures by name; bounds: by measure, what no plan undercuts. predicted: what
    executing it takes; rollback_cost: what going back from the end takes. review: while it waits,
    what the actions that can still be applied would do now. snapshot: the digest of what it was
    computed from. action_count: null without a plan.
    """

    snapshot: str | None = below("snapshot_row_id")
    action_count: int | None

    @staticmethod
    def resolve_action_count(row: Proposal) -> int | None:
        """Return how many actions it has, without reading them."""
        count: int | None = row.predicted.get("actions")
        return count


class ProposalOut(ProposalRow):
    """A proposal; allowed: what the caller may do with it now."""

    allowed: list[VerbOut]

    @staticmethod
    def resolve_allowed(row: Proposal, context: Mapping[str, Any]) -> list[Verb]:
        """Return the verbs that the state, the policy and the caller's role allow."""
        return verbs.offered(caller(context["request"]), row)


class ProposalPage(ListOut):
    """One page of proposals."""

    proposals: list[ProposalRow]


class ActionOut(fields_of(ActionRow, ActionText, ActionStatus, without="text")):  # type: ignore[misc]
    """An action at its place in the order, from 0.

    kind and action: as in routing versions; title, object, before and after: for people. query,
    stream, task: ids of what changes. bytes: of state that moves, as last measured. imbalance: as
    predicted after it. status: of the execution, in which step; code: why it was skipped.
    """

    action: dict[str, Any]
    imbalance: float | None


class ActionPage(PageOut):
    """One page of actions in the order in which they are executed."""

    seal: str
    actions: list[ActionOut]


class DriftOut(fields_of(Drift)):  # type: ignore[misc]
    """How far the cluster is from the snapshot; exceeded: what the policy does not tolerate."""

    stale: bool


class ParameterOut(fields_of(ParameterField, without="type optional")):  # type: ignore[misc]
    """One parameter of an algorithm, with the cluster's default; type: bool, int, float or str."""

    type: str = below("type.__name__")


class AlgorithmOut(Schema):
    """An algorithm of a planner; default: what an empty name asks for."""

    name: str = below("algorithm.name")
    title: str = below("algorithm.title")
    summary: str = below("algorithm.summary")
    default: bool
    parameters: list[ParameterOut] = below("fields")


class MeasureOut(fields_of(Measure, without="compute")):  # type: ignore[misc]
    """A measure of proposals; better: lower, higher or neither."""


class PlannerOut(Schema):
    """A connected planner: its algorithms, and the measures of its proposals.

    improves: the measures that define the gain of its plans.
    """

    name: str = below("adapter.name")
    title: str = below("adapter.planner.title")
    hint: str = below("adapter.hint")
    moves_state: bool = below("adapter.moves_state")
    improves: list[str] = below("adapter.improves")
    algorithms: list[AlgorithmOut]
    measures: list[MeasureOut]
