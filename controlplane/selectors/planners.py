"""Planners and their algorithms as a proposal can be asked of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from algorithms.planner import Algorithm
from algorithms.registry import PLACEMENT, algorithms
from algorithms.vocabulary import ParameterField
from controlplane.models import Cluster, Proposal
from controlplane.planning.computation import CONNECTED
from controlplane.proposals.requests import DEFAULTS, MAX_SLACK, TAU

NU_HELP = "Slack: a node hosts at most (1 + nu) times its even share of the queries."
TAU_HELP = "Slack: a node does at most (1 + tau) times its share of the work."


@dataclass(frozen=True)
class Offered:
    """An algorithm with its parameters; their defaults are the cluster's."""

    algorithm: Algorithm
    fields: Sequence[ParameterField]
    default: bool


@dataclass(frozen=True)
class PlannerKind:
    """A kind of planner; one that is not connected makes no proposals yet."""

    kind: str
    connected: bool
    algorithms: Sequence[Offered]


def planner_kinds(cluster: Cluster) -> list[PlannerKind]:
    """Return every kind of planner with what it offers."""
    return [_kind(kind, cluster) for kind in Proposal.Kind.values]


def _kind(kind: str, cluster: Cluster) -> PlannerKind:
    if kind not in CONNECTED:
        return PlannerKind(kind, connected=False, algorithms=[])
    offered = [
        Offered(one, parameter_fields(kind, one, cluster), one.name == DEFAULTS[kind])
        for one in offered_algorithms(kind)
    ]
    return PlannerKind(kind, connected=True, algorithms=offered)


def offered_algorithms(planner: str) -> tuple[Algorithm, ...]:
    """Return the algorithms that need no more than a snapshot, the best known first."""
    return tuple(one for one in algorithms(planner) if one.read is None)


def parameter_fields(planner: str, chosen: Algorithm, cluster: Cluster) -> list[ParameterField]:
    """Return the balance slack and the algorithm's own parameters, with the cluster's defaults."""
    slack = (
        ParameterField("nu", float, cluster.nu, "", NU_HELP, 0.0, MAX_SLACK)
        if planner == PLACEMENT
        else ParameterField("tau", float, TAU, "", TAU_HELP, 0.0, MAX_SLACK)
    )
    own = [field for field in chosen.parameters.fields() if field.name != slack.name]
    return [slack, *(_with_default(field, cluster) for field in own)]


def _with_default(field: ParameterField, cluster: Cluster) -> ParameterField:
    return replace(field, default=cluster.alpha) if field.name == "alpha" else field
