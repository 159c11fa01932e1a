"""Requests of plans, and the planners that compute them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from algorithms.estimates import Estimate
from algorithms.planner import Algorithm
from algorithms.vocabulary import ParameterField
from controlplane.access import audit
from controlplane.access.roles import Actor, Automatic, require_operator
from controlplane.errors import Invalid
from controlplane.models import Cluster, Comparison, Proposal
from controlplane.planning.adapter import Defaults, PlannerAdapter
from controlplane.planning.adapters import adapter_of, adapters, measures_of
from controlplane.planning.budget import checked_budget
from controlplane.planning.estimates import require_affordable_plan
from controlplane.planning.goals import Goal, goal_plan
from controlplane.planning.measures import Measure
from controlplane.policies.store import policy_of
from controlplane.proposals.queue import equal_request, lock_requests, require_room
from controlplane.proposals.transitions import notify
from controlplane.task_names import COMPUTE_PROPOSAL, send_on_commit


def default_planner() -> str:
    """Return the planner of a request that names none: the first one."""
    return next(iter(adapters()))


@transaction.atomic
def request(
    actor: Actor,
    cluster: Cluster,
    algorithm_name: str = "",
    parameters: Mapping[str, Any] | None = None,
    *,
    planner: str = "",
    base: Proposal | None = None,
    comparison: Comparison | None = None,
) -> Proposal:
    """Create a proposal that a worker computes.

    `parameters`: of planner and algorithm, completed by the cluster's defaults, and `budget`, the
    limit of the plan's cost (planning.budget). `base`: the proposal that this one replaces. Returns
    the waiting proposal if the user has requested the same already. Raises `Forbidden`, `Invalid`
    per parameter, `TooExpensive`, `Busy` too_many_requests, too_many_computations.
    """
    if not isinstance(actor, Automatic):
        require_operator(actor, cluster)
    adapter = adapter_of(planner or default_planner())
    chosen = adapter.algorithm(algorithm_name)
    checked = checked_parameters(adapter, chosen, parameters or {}, cluster)
    plan = {"planner": adapter.name, "algorithm": chosen.name, "parameters": checked}
    need = require_affordable_plan(chosen, checked, cluster)
    if comparison is None and not isinstance(actor, Automatic):
        lock_requests(actor, cluster)
        # A request that changes nothing has no entry in the audit log.
        if equal := equal_request(actor, {"cluster": cluster, "base": base, **plan}):
            return equal
        require_room(actor, cluster)
    proposal = _created(
        actor, cluster, **plan, base=base, comparison=comparison, estimate=need.to_json()
    )
    audit.record(actor, "proposal.request", str(proposal), cluster=cluster, after=plan)
    notify(proposal, f"requested by {actor.name}")
    send_on_commit(COMPUTE_PROPOSAL, proposal.pk)
    return proposal


def request_for_goal(actor: Actor, cluster: Cluster, name: str) -> Proposal:
    """Request a plan for a goal. Raises `Invalid` for an unknown one, and as `request`."""
    if name not in list(Goal):
        raise Invalid({"goal": [f"Must be one of {', '.join(Goal)}"]})
    plan = goal_plan(cluster, Goal(name))
    return request(actor, cluster, plan.algorithm, plan.parameters, planner=plan.planner)


def _created(actor: Actor, cluster: Cluster, **columns: Any) -> Proposal:
    return Proposal.objects.create(
        cluster=cluster,
        **columns,
        seed=int(columns["parameters"].get("seed", 0)),
        origin="watch" if isinstance(actor, Automatic) else "person",
        requested_by=actor.name,
        requested_at=timezone.now(),
        four_eyes=policy_of(cluster).four_eyes,
    )


def estimate(
    cluster: Cluster, planner: str, algorithm_name: str, parameters: Mapping[str, Any]
) -> Estimate:
    """Return the estimate of a plan without requesting it. Raises as `request`."""
    adapter = adapter_of(planner or default_planner())
    chosen = adapter.algorithm(algorithm_name)
    checked = checked_parameters(adapter, chosen, parameters, cluster)
    return require_affordable_plan(chosen, checked, cluster)


def request_again(actor: Actor, proposal: Proposal) -> Proposal:
    """Request the same plan for the cluster as it is now. Raises `Forbidden`."""
    return request(
        actor,
        proposal.cluster,
        proposal.algorithm,
        proposal.parameters,
        planner=proposal.planner,
        base=proposal,
    )


def checked_parameters(
    adapter: PlannerAdapter, chosen: Algorithm, given: Mapping[str, Any], cluster: Defaults
) -> dict[str, Any]:
    """Return all parameters of a plan, and its budget if there is one. Raises `Invalid`."""
    budget = checked_budget(given.get("budget"))
    own = {name: value for name, value in given.items() if name != "budget"}
    checked = adapter.checked(chosen, own, cluster)
    return checked | ({"budget": budget} if budget else {})


@dataclass(frozen=True)
class OfferedAlgorithm:
    """An algorithm and its parameters, with the defaults of a cluster."""

    algorithm: Algorithm
    fields: Sequence[ParameterField]
    default: bool


@dataclass(frozen=True)
class OfferedPlanner:
    """A connected planner, its algorithms, and the measures of its proposals."""

    adapter: PlannerAdapter
    algorithms: Sequence[OfferedAlgorithm]
    measures: Sequence[Measure]


def offered_planners(cluster: Cluster) -> list[OfferedPlanner]:
    """Return every connected planner, in their order."""
    offered = []
    for adapter in adapters().values():
        algorithms = [
            OfferedAlgorithm(item, adapter.fields(item, cluster), item.name == adapter.default)
            for item in adapter.algorithms
        ]
        offered.append(OfferedPlanner(adapter, algorithms, measures_of(adapter.name)))
    return offered
