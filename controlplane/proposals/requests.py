"""Asking a planner for a plan."""

import math
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from algorithms.errors import BadParameters, UnknownAlgorithm, UnknownPlanner
from algorithms.migration.planner import MIGRATION
from algorithms.planner import Algorithm
from algorithms.registry import PLACEMENT, algorithm
from controlplane.access import audit
from controlplane.access.roles import Actor, Automatic, require_operator
from controlplane.errors import Invalid
from controlplane.models import Cluster, Comparison, Proposal
from controlplane.planning.budget import checked_budget
from controlplane.planning.computation import CONNECTED
from controlplane.policies.store import policy_of
from controlplane.proposals.notifications import tell
from controlplane.task_names import COMPUTE_PROPOSAL, send_on_commit

# With nu = 1 a server may host twice its share; more slack than ten times is no balance at all.
MAX_SLACK = 10.0
DEFAULTS = {PLACEMENT: "mms", MIGRATION: "single_step"}
# The slack of each planner's balance, which is the proposal's, and its default.
TAU = 0.4


@transaction.atomic
def request(
    actor: Actor,
    cluster: Cluster,
    algorithm_name: str = "",
    parameters: Mapping[str, Any] | None = None,
    *,
    planner: str = PLACEMENT,
    base: Proposal | None = None,
    comparison: Comparison | None = None,
) -> Proposal:
    """Save a proposal that a worker computes.

    parameters are the algorithm's own, and the balance slack: nu for placement, the cluster's by
    default, tau for migration; and budget, what the plan may cost (planning.budget). base: the
    proposal that it is asked for instead of. Raises `Forbidden`, `Invalid` per parameter.
    """
    if not isinstance(actor, Automatic):
        require_operator(actor, cluster)
    chosen = chosen_algorithm(planner, algorithm_name or DEFAULTS.get(planner, ""))
    checked = chosen_parameters(planner, chosen, dict(parameters or {}), cluster)
    proposal = Proposal.objects.create(
        cluster=cluster,
        planner=planner,
        algorithm=chosen.name,
        parameters=checked,
        seed=int(checked.get("seed", 0)),
        origin="watch" if isinstance(actor, Automatic) else "person",
        base=base,
        comparison=comparison,
        requested_by=actor.name,
        requested_at=timezone.now(),
        four_eyes=policy_of(cluster).four_eyes,
    )
    asked = {"planner": planner, "algorithm": chosen.name, "parameters": checked}
    audit.record(actor, "proposal.request", str(proposal), cluster=cluster, after=asked)
    tell(proposal, f"asked by {actor.name}")
    send_on_commit(COMPUTE_PROPOSAL, proposal.pk)
    return proposal


def ask_anew(actor: Actor, proposal: Proposal) -> Proposal:
    """Ask for the same plan on the cluster as it is now. Raises `Forbidden`."""
    return request(
        actor,
        proposal.cluster,
        proposal.algorithm,
        proposal.parameters,
        planner=proposal.planner,
        base=proposal,
    )


def chosen_algorithm(planner: str, name: str) -> Algorithm:
    """Return an algorithm that plans for a cluster. Raises `Invalid`."""
    if planner not in CONNECTED:
        known = ", ".join(CONNECTED)
        raise Invalid({"planner": [f"Must be one of {known}, not {planner[:40] or 'empty'}"]})
    try:
        found = algorithm(planner, name)
    except (UnknownAlgorithm, UnknownPlanner) as unknown:
        raise Invalid({"algorithm": [str(unknown)]}) from None
    if found.read is not None:
        raise Invalid({"algorithm": [f"{name} does not plan for a running cluster"]})
    return found


def chosen_parameters(
    planner: str, chosen: Algorithm, given: dict[str, Any], cluster: Cluster
) -> dict[str, Any]:
    """Return the parameters of an algorithm, the balance slack among them. Raises `Invalid`."""
    budget = checked_budget(given.pop("budget", None))
    name = "nu" if planner == PLACEMENT else "tau"
    slack = given.pop(name, cluster.nu if planner == PLACEMENT else TAU)
    if isinstance(slack, bool) or not isinstance(slack, int | float) or not math.isfinite(slack):
        raise Invalid({name: ["Must be a number"]})
    if not 0 <= slack <= MAX_SLACK:
        raise Invalid({name: [f"Must be 0 to {MAX_SLACK:g}"]})
    own = {field.name for field in chosen.parameters.fields()}
    if name in own:
        given[name] = float(slack)
    try:
        found: dict[str, Any] = chosen.parameters.from_mapping(given).to_mapping()
    except BadParameters as bad:
        raise Invalid(dict(bad.fields)) from None
    return found | {name: float(slack)} | ({"budget": budget} if budget else {})
