"""Requests of plans, of a planner or of moves that a person chose, and the connected planners."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from algorithms.estimates import Estimate
from algorithms.placement.improve import Goal
from algorithms.placement.planner import IMPROVE, PLANNER
from algorithms.planner import Algorithm
from algorithms.vocabulary import ParameterField
from controlplane.access import audit
from controlplane.access.roles import Actor, Automatic, require_operator
from controlplane.errors import Invalid, Unusable
from controlplane.events import traces
from controlplane.events.task_names import COMPUTE_PROPOSAL, send_on_commit
from controlplane.models import Cluster, Comparison, Proposal, Query
from controlplane.planning.adapter import Defaults, Missing, PlannerAdapter
from controlplane.planning.adapters import adapter_of, adapters, measures_of, missing_for
from controlplane.planning.budget import checked_budget
from controlplane.planning.estimates import require_affordable_plan
from controlplane.planning.measures import IMBALANCE, TRAFFIC, Measure
from controlplane.planning.sources import MANUAL, MOVES, estimate_moves
from controlplane.policies.gate import LIMITS, Judgement
from controlplane.policies.store import policy_of
from controlplane.proposals.queue import equal_request, lock_requests, require_room
from controlplane.proposals.transitions import notify

# The queries of one manual plan, and the faults that a refusal names.
MOST_MOVED: Final = 1_000
_NAMED: Final = 10
# The measures of which a plan of a goal must improve one.
_AIMS: Final[Mapping[str, Sequence[str]]] = {
    Goal.REPAIR: (LIMITS,),
    Goal.TRAFFIC: (TRAFFIC.name,),
    Goal.EVEN: (IMBALANCE.name,),
    Goal.FEW_MOVES: (LIMITS,),
}


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
    aims: Sequence[str] = (),
) -> Proposal:
    """Create a proposal that a worker computes.

    `parameters`: of planner and algorithm, completed by the cluster's defaults, and `budget`, the
    limit of the plan's cost (planning.budget). `base`: the proposal that this one replaces. `aims`:
    the measures of which the plan must improve one, without any those of its planner. Returns the
    waiting proposal if the user has requested the same already. Raises `Forbidden`, `Invalid` per
    parameter, `Unusable` with the code of what the cluster lacks, `TooExpensive`, `Busy`
    too_many_requests, too_many_computations.
    """
    if not isinstance(actor, Automatic):
        require_operator(actor, cluster)
    adapter = adapter_of(planner or default_planner())
    chosen = adapter.algorithm(algorithm_name)
    checked = checked_parameters(adapter, chosen, parameters or {}, cluster)
    if (missing := missing_for(cluster, adapter, chosen.name)) is not None:
        raise Unusable(missing.code, "planner", missing.text)
    plan = {
        "planner": adapter.name, "algorithm": chosen.name, "parameters": checked, "aims": list(aims)
    }  # fmt: skip
    need = require_affordable_plan(chosen, checked, cluster)
    return _submitted(actor, cluster, plan, need, base=base, comparison=comparison)


def _submitted(
    actor: Actor,
    cluster: Cluster,
    plan: Mapping[str, Any],
    need: Estimate,
    *,
    base: Proposal | None = None,
    comparison: Comparison | None = None,
    reason: str = "",
) -> Proposal:
    """Create the proposal of a checked plan: planner, algorithm, parameters. Raises `Busy`."""
    if comparison is None and not isinstance(actor, Automatic):
        lock_requests(actor, cluster)
        # A request that changes nothing has no entry in the audit log.
        if equal := equal_request(actor, {"cluster": cluster, "base": base, **plan}):
            return equal
        require_room(actor, cluster)
    proposal = _created(
        actor, cluster, **plan, base=base, comparison=comparison, estimate=need.to_json()
    )
    audit.record(
        actor, "proposal.request", str(proposal), cluster=cluster, reason=reason, after=dict(plan)
    )
    notify(proposal, f"requested by {actor.name}")
    send_on_commit(COMPUTE_PROPOSAL, proposal.pk)
    return proposal


@transaction.atomic
def request_moves(
    actor: Actor, cluster: Cluster, names: Sequence[str], node: int, reason: str = ""
) -> Proposal:
    """Create a proposal that moves the running queries with these names to a node.

    `node`: its index. A worker computes cost, measures and seal, and a person approves it as any
    other. Raises `Forbidden`, `Invalid` for a node or queries that cannot have such a move, `Busy`.
    """
    require_operator(actor, cluster)
    if not cluster.nodes.filter(index=node, active=True).exists():
        raise Invalid({"node": [f"The cluster has no active node {node}"]})
    queries = sorted(_movable(cluster, names))
    parameters = {"queries": queries, "node": node}
    plan = {"planner": MANUAL, "algorithm": MOVES, "parameters": parameters, "aims": []}
    return _submitted(actor, cluster, plan, estimate_moves(cluster), reason=reason)


def _movable(cluster: Cluster, names: Sequence[str]) -> list[int]:
    """Return the ids of running queries of one task. Raises `Invalid` with the other names."""
    wanted = dict.fromkeys(names)
    if not 1 <= len(wanted) <= MOST_MOVED:
        raise Invalid({"queries": [f"Choose 1 to {MOST_MOVED:,} queries, not {len(wanted):,}"]})
    running = Query.objects.filter(
        cluster=cluster, name__in=wanted, state=Query.State.RUNNING
    ).values_list("name", "id", "task_count")
    ids, faults = {}, {}
    for name, pk, tasks in running:
        ids[name] = pk
        if tasks > 1:
            faults[name] = f"{name} has {tasks} tasks: request a plan of the planner migration"
    faults |= {name: f"{name} does not run" for name in wanted if name not in ids}
    if faults:
        more = [f"{len(faults) - _NAMED:,} further queries"] * (len(faults) > _NAMED)
        raise Invalid({"queries": [*list(faults.values())[:_NAMED], *more]})
    return list(ids.values())


def request_for_goal(
    actor: Actor, cluster: Cluster, name: str, imbalance: float | None = None
) -> Proposal:
    """Request a plan for a goal. Raises `Invalid` for an unknown one, and as `request`.

    `imbalance`: the largest of the plan, the limit of the policy for None.
    """
    if name not in list(Goal):
        raise Invalid({"goal": [f"Must be one of {', '.join(Goal)}"]})
    given = {"goal": name, "imbalance": imbalance}
    return request(actor, cluster, IMPROVE, given, planner=PLANNER.name, aims=_AIMS[name])


def missing_of_goals(cluster: Cluster) -> dict[Goal, Missing | None]:
    """Return what the cluster lacks for a plan of each goal, None if nothing."""
    return dict.fromkeys(Goal, missing_for(cluster, adapter_of(PLANNER.name), IMPROVE))


def _created(actor: Actor, cluster: Cluster, **columns: Any) -> Proposal:
    return Proposal.objects.create(
        cluster=cluster,
        **columns,
        seed=int(columns["parameters"].get("seed", 0)),
        origin="watch" if isinstance(actor, Automatic) else "person",
        requested_by=actor.name,
        requested_at=timezone.now(),
        traceparent=traces.current(),
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


def request_again(actor: Actor, proposal: Proposal, *, better: bool = False) -> Proposal:
    """Request the same plan for the cluster as it is now. Raises `Forbidden`, `Unusable`.

    `better`: with the parameter from which a better plan begins, if the gate has found one.
    """
    if proposal.planner == MANUAL:
        require_operator(actor, proposal.cluster)
        names = ("planner", "algorithm", "parameters", "aims")
        plan = {name: getattr(proposal, name) for name in names}
        with transaction.atomic():
            need = estimate_moves(proposal.cluster)
            return _submitted(actor, proposal.cluster, plan, need, base=proposal)
    judgement = Judgement.stored(proposal.judgement)
    known = judgement.better if judgement is not None and better else None
    changed = {known.parameter: known.value} if known and not known.is_limit else {}
    return request(
        actor,
        proposal.cluster,
        proposal.algorithm,
        {**proposal.parameters, **changed},
        planner=proposal.planner,
        base=proposal,
        aims=proposal.aims,
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
    """A connected planner, its algorithms, and the measures of its proposals.

    `missing`: what the cluster lacks for a plan of its default algorithm, None if nothing.
    """

    adapter: PlannerAdapter
    algorithms: Sequence[OfferedAlgorithm]
    measures: Sequence[Measure]
    missing: Missing | None


def offered_planners(cluster: Cluster) -> list[OfferedPlanner]:
    """Return every connected planner, in their order."""
    offered = []
    for adapter in adapters().values():
        algorithms = [
            OfferedAlgorithm(item, adapter.fields(item, cluster), item.name == adapter.default)
            for item in adapter.algorithms
        ]
        missing = missing_for(cluster, adapter)
        offered.append(OfferedPlanner(adapter, algorithms, measures_of(adapter.name), missing))
    return offered
