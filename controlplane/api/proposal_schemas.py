"""Shapes of proposals in the API's bodies."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from ninja import Schema
from pydantic import Field

from controlplane.api.common.schemas import ListOut, ReasonIn
from controlplane.api.common.security import caller
from controlplane.executions import verbs
from controlplane.models import Proposal
from controlplane.plans.proposal_states import Verb
from controlplane.proposals.planners import OfferedAlgorithm, OfferedPlanner


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
    """A verb that the caller may say now: POST it below the proposal's address."""

    verb: str
    about: str
    seal: bool
    reason: bool

    @staticmethod
    def resolve_verb(verb: Verb) -> str:
        """Return it as a part of an address."""
        return verb.path


class AutoApprovalOut(Schema):
    """Whether the policy starts a proposal without a person: code, deciding number, its limit."""

    allowed: bool
    code: str
    number: float | None
    limit: float | None
    text: str


class AllowedOut(Schema):
    """What the caller may do with a proposal in its state; request_again makes another one.

    auto_approval: the policy's decision on a ready proposal, null for others.
    """

    state: str
    verbs: list[VerbOut]
    request_again: bool
    auto_approval: AutoApprovalOut | None


class ProposalRow(Schema):
    """A proposal as lists have it.

    before, after: measures by name; bounds: by measure, what no plan undercuts. predicted: what
    executing it takes; rollback_cost: what going back from the end takes. review: while it waits,
    what the actions that can still be applied would do now.
    """

    id: int
    state: str
    progress: float
    planner: str
    algorithm: str
    parameters: dict[str, Any]
    origin: str
    base: int | None
    requested_by: str
    requested_at: datetime
    four_eyes: bool
    approved_by: str
    approved_at: datetime | None
    decided_by: str
    decided_at: datetime | None
    snapshot: str | None
    snapshot_version: int
    before: dict[str, Any]
    after: dict[str, Any]
    predicted: dict[str, Any]
    rollback_cost: dict[str, Any]
    bounds: dict[str, float]
    action_count: int | None
    seal: str
    drift: dict[str, Any]
    review: dict[str, Any]
    error: str

    @staticmethod
    def resolve_base(row: Proposal) -> int | None:
        """Return the proposal that it was derived from."""
        return row.base_id

    @staticmethod
    def resolve_snapshot(row: Proposal) -> str | None:
        """Return the digest of what it was computed from."""
        return row.snapshot_row_id

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


class ActionOut(Schema):
    """An action at its place in the order, from 0.

    kind and action: as in routing versions; title, object, before and after: for people. query,
    stream, task: ids of what changes. bytes: of state that moves, as last measured. imbalance: as
    predicted after it. status: of the execution, in which step; code: why it was skipped.
    """

    place: int
    kind: str
    action: dict[str, Any]
    title: str
    object: str
    before: str
    after: str
    query: int | None
    stream: int | None
    task: int | None
    bytes: int
    imbalance: float | None
    status: str
    step: int | None
    code: str


class ActionPage(Schema):
    """One page of actions in the order in which they are executed."""

    total: int
    page: int
    pages: int
    seal: str
    actions: list[ActionOut]


class DriftOut(Schema):
    """How far the cluster is from the snapshot; exceeded: what the policy does not tolerate."""

    stale: bool
    exceeded: list[str]
    ended: int
    new: int
    queries: int
    gone_nodes: list[int]
    capacities: list[int]
    obstacles: dict[str, int]
    rate_change: float
    gain_lost: float | None


class ParameterOut(Schema):
    """One parameter of an algorithm, with the cluster's default."""

    name: str
    type: str
    default: Any
    unit: str
    help: str
    minimum: float | None
    maximum: float | None
    choices: list[str]

    @staticmethod
    def resolve_type(field: Any) -> str:
        """Return bool, int, float or str."""
        return str(field.type.__name__)


class AlgorithmOut(Schema):
    """An algorithm of a planner; default: what an empty name asks for."""

    name: str
    title: str
    summary: str
    default: bool
    parameters: list[ParameterOut]

    @staticmethod
    def resolve_name(offered: OfferedAlgorithm) -> str:
        """Return how it is asked for."""
        return offered.algorithm.name

    @staticmethod
    def resolve_title(offered: OfferedAlgorithm) -> str:
        """Return what people call it."""
        return offered.algorithm.title

    @staticmethod
    def resolve_summary(offered: OfferedAlgorithm) -> str:
        """Return what it does."""
        return offered.algorithm.summary

    @staticmethod
    def resolve_parameters(offered: OfferedAlgorithm) -> Any:
        """Return its parameters, the slack first."""
        return offered.fields


class MeasureOut(Schema):
    """A measure of proposals; better: lower, higher or neither."""

    name: str
    title: str
    unit: str
    better: str
    per_node: bool


class PlannerOut(Schema):
    """A connected planner: its algorithms, and the measures of its proposals."""

    name: str
    title: str
    hint: str
    moves_state: bool
    improves: list[str]
    algorithms: list[AlgorithmOut]
    measures: list[MeasureOut]

    @staticmethod
    def resolve_name(offered: OfferedPlanner) -> str:
        """Return the name by which plans are requested."""
        return offered.adapter.name

    @staticmethod
    def resolve_title(offered: OfferedPlanner) -> str:
        """Return what people call it."""
        return offered.adapter.planner.title

    @staticmethod
    def resolve_hint(offered: OfferedPlanner) -> str:
        """Return what it does."""
        return offered.adapter.hint

    @staticmethod
    def resolve_moves_state(offered: OfferedPlanner) -> bool:
        """Return whether its actions move state."""
        return offered.adapter.moves_state

    @staticmethod
    def resolve_improves(offered: OfferedPlanner) -> list[str]:
        """Return the measures by which its plans are judged."""
        return list(offered.adapter.improves)
