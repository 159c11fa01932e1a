"""Comparisons: plans of several planners and budgets for one snapshot."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, Automatic, require_operator
from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Comparison, Proposal
from controlplane.planning.adapters import input_readers
from controlplane.planning.budget import checked_budget
from controlplane.planning.snapshots import keep_snapshot, take_snapshot
from controlplane.plans.snapshot import canonical
from controlplane.proposals import decisions, requests
from controlplane.proposals.queue import lock_requests, require_room

# A chart with more candidates is unreadable, and each occupies a worker.
MAX_CANDIDATES = 24


class PlannerRequest(NamedTuple):
    """One planner's algorithm with its parameters, as for a proposal."""

    planner: str
    algorithm: str
    parameters: Mapping[str, Any]


def compare(
    actor: Actor,
    cluster: Cluster,
    wanted: Sequence[PlannerRequest | tuple[str, str, Mapping[str, Any]]],
    budget: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
) -> Comparison:
    """Take one snapshot and request a plan of each planner under each budget.

    `budget`: one (planning.budget), several for a curve, or none; an empty one is not a limit.
    Workers compute the candidates in turn. Each candidate is a proposal; one of them can be
    approved. Raises `Forbidden`, `Invalid`, `Busy` too_many_requests, too_many_computations.
    """
    if not isinstance(actor, Automatic):
        require_operator(actor, cluster)
    budgets = _budgets(budget)
    candidates = _candidates(wanted, budgets)
    readers = input_readers(candidate.planner for candidate in candidates)
    row = keep_snapshot(take_snapshot(cluster.pk, cluster.nu, readers))
    with transaction.atomic():
        if not isinstance(actor, Automatic):
            lock_requests(actor, cluster)
            require_room(actor, cluster, len(candidates))
        comparison = Comparison.objects.create(
            cluster=cluster,
            snapshot_row=row,
            requested_by=actor.name,
            requested_at=timezone.now(),
            budget={"levels": budgets},
        )
        for candidate in candidates:
            requests.request(
                actor, cluster, candidate.algorithm, candidate.parameters,
                planner=candidate.planner, comparison=comparison,
            )  # fmt: skip
        audit.record(
            actor, "comparison.request", str(comparison), cluster=cluster,
            after={"candidates": len(candidates), "budgets": budgets},
        )  # fmt: skip
    return comparison


def cancel(actor: Actor, comparison: Comparison, reason: str = "") -> int:
    """Cancel the candidates that are being computed; return how many. Raises `Forbidden`."""
    require_operator(actor, comparison.cluster)
    computing = comparison.candidates.filter(state=Proposal.State.COMPUTING)
    return sum(
        _cancelled(actor, candidate, reason) for candidate in computing.select_related("cluster")
    )


def _cancelled(actor: Actor, proposal: Proposal, reason: str) -> bool:
    try:
        decisions.cancel(actor, proposal, reason)
    except Conflict:
        # It is ready meanwhile.
        return False
    return True


def _budgets(given: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    levels = [given] if given is None or isinstance(given, Mapping) else list(given)
    by_text = {canonical(level): level for level in map(checked_budget, levels or [{}])}
    return list(by_text.values())


def _candidates(
    wanted: Sequence[PlannerRequest | tuple[str, str, Mapping[str, Any]]],
    budgets: Sequence[Mapping[str, Any]],
) -> list[PlannerRequest]:
    """Return every planner under every budget, each once."""
    candidates: dict[str, PlannerRequest] = {}
    for planner, name, given in wanted:
        item = PlannerRequest(planner or requests.default_planner(), name, given)
        for budget in budgets:
            parameters = dict(item.parameters) | ({"budget": dict(budget)} if budget else {})
            key = repr((item.planner, item.algorithm, sorted(parameters.items(), key=str)))
            candidates.setdefault(key, PlannerRequest(item.planner, item.algorithm, parameters))
    if not candidates:
        raise Invalid({"asked": ["Choose at least one planner"]})
    if len(candidates) > MAX_CANDIDATES:
        count = len(candidates)
        text = f"{count} plans are too many, {MAX_CANDIDATES} at most: fewer planners or budgets"
        raise Invalid({"asked": [text]})
    return list(candidates.values())
