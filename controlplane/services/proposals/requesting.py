"""Asking a planner for a plan."""

import math
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from algorithms.errors import BadParameters, UnknownAlgorithm
from algorithms.placement.planner import PlacementAlgorithm
from algorithms.registry import PLACEMENT, algorithm
from controlplane.errors import Invalid
from controlplane.models import Cluster, Proposal
from controlplane.services import audit
from controlplane.services.access import Actor, require_operator
from controlplane.services.proposals.telling import tell
from controlplane.task_names import COMPUTE_PROPOSAL, send_on_commit

# With nu = 1 a server may host twice its share; more slack than ten times is no balance at all.
MAX_NU = 10.0


@transaction.atomic
def request(
    actor: Actor,
    cluster: Cluster,
    algorithm_name: str = "mms",
    parameters: Mapping[str, Any] | None = None,
) -> Proposal:
    """Save a proposal that a worker computes.

    parameters are the algorithm's own, and nu, the balance slack, the cluster's by default.
    Raises `Forbidden`, `Invalid` per parameter.
    """
    require_operator(actor)
    chosen = _algorithm(algorithm_name)
    checked = _parameters(chosen, dict(parameters or {}), cluster)
    proposal = Proposal.objects.create(
        cluster=cluster,
        planner=PLACEMENT,
        algorithm=chosen.name,
        parameters=checked,
        seed=int(checked.get("seed", 0)),
        requested_by=actor.name,
        requested_at=timezone.now(),
    )
    audit.record(
        actor,
        "proposal.request",
        str(proposal),
        cluster=cluster,
        after={"algorithm": chosen.name, "parameters": checked},
    )
    tell(proposal, f"asked by {actor.name}")
    send_on_commit(COMPUTE_PROPOSAL, proposal.pk)
    return proposal


def _algorithm(name: str) -> PlacementAlgorithm:
    try:
        return algorithm(PLACEMENT, name)
    except UnknownAlgorithm as unknown:
        raise Invalid({"algorithm": [str(unknown)]}) from None


def _parameters(
    chosen: PlacementAlgorithm, given: dict[str, Any], cluster: Cluster
) -> dict[str, float]:
    nu = given.pop("nu", cluster.nu)
    if isinstance(nu, bool) or not isinstance(nu, int | float) or not math.isfinite(nu):
        raise Invalid({"nu": ["Must be a number"]})
    if not 0 <= nu <= MAX_NU:
        raise Invalid({"nu": [f"Must be 0 to {MAX_NU:g}"]})
    own = {field.name for field in chosen.parameters.fields()}
    if "nu" in own:
        given["nu"] = float(nu)
    try:
        return chosen.parameters.from_mapping(given).to_mapping() | {"nu": float(nu)}
    except BadParameters as bad:
        raise Invalid(dict(bad.fields)) from None
