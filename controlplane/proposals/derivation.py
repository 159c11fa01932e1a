"""Derived proposals: a proposal without some of its actions, on the same snapshot."""

from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Conflict, Invalid
from controlplane.events import traces
from controlplane.models import Proposal
from controlplane.planning.computation import compute_plan
from controlplane.plans.proposal_states import BY_NAME
from controlplane.policies.gate import PlanGate
from controlplane.policies.measure_limits import cluster_limits
from controlplane.policies.store import limits_of, policy_of
from controlplane.proposals.computation import step_seconds
from controlplane.proposals.transitions import WEIR, move_on, notify

# The number of actions that an audit record lists.
MAX_LISTED = 20


@transaction.atomic
def without(actor: Actor, proposal: Proposal, places: Collection[int]) -> Proposal:
    """Create a proposal without the actions at these places, with its own order, cost and seal.

    The base is unchanged until one of the two is approved. Raises `Forbidden`, `Invalid` if no
    place or every place is named, `Conflict` not_ready, no_better_plan.
    """
    require_operator(actor, proposal.cluster)
    proposal.refresh_from_db()
    if proposal.state != Proposal.State.READY or proposal.snapshot_row is None:
        raise Conflict(
            "not_ready", f"The proposal is {proposal.state}: only ready proposals can be changed"
        )
    dropped = _checked(places, len(proposal.actions))
    derived = Proposal.objects.create(**_kept(proposal), **_columns(proposal, dropped, actor))
    plan = proposal.plan
    removed = [plan[place].action_json() for place in sorted(dropped)[:MAX_LISTED]]
    audit.record(
        actor,
        "proposal.derive",
        str(derived),
        cluster=derived.cluster,
        before={"proposal": proposal.pk, "actions": len(proposal.actions)},
        after={"actions": len(derived.actions), "removed": removed},
        seal=derived.seal,
    )
    notify(derived, f"proposal {proposal.pk} without {len(dropped)} of its actions")
    return derived


def _checked(places: Collection[int], count: int) -> set[int]:
    dropped = set(places)
    if not dropped or not dropped <= set(range(count)):
        raise Invalid({"places": [f"Must name actions by their places, 0 to {count - 1}"]})
    if len(dropped) == count:
        raise Invalid({"places": ["At least one action must remain"]})
    return dropped


def _kept(proposal: Proposal) -> dict[str, Any]:
    """Return the fields that a derived proposal copies from its base."""
    return {
        "cluster": proposal.cluster,
        "planner": proposal.planner,
        "algorithm": proposal.algorithm,
        "parameters": proposal.parameters,
        "seed": proposal.seed,
        "snapshot_row": proposal.snapshot_row,
        "snapshot_version": proposal.snapshot_version,
        "bounds": proposal.bounds,
        "aims": proposal.aims,
    }


def _columns(proposal: Proposal, dropped: set[int], actor: Actor) -> dict[str, Any]:
    assert proposal.snapshot_row is not None
    policy = policy_of(proposal.cluster)
    plan = [planned for place, planned in enumerate(proposal.plan) if place not in dropped]
    row, step_s = proposal.snapshot_row, step_seconds(proposal.cluster)
    computed = compute_plan(row, proposal.planner, plan, limits_of(policy), step_s)
    judgement = PlanGate.of(proposal, policy).decide(computed)
    if judgement is not None:
        message = "Without these actions the plan is not better than the cluster as it is"
        raise Conflict("no_better_plan", message, judgement.to_json())
    if "computed_s" in proposal.predicted:
        computed.predicted["computed_s"] = proposal.predicted["computed_s"]
    computed.predicted["limits"] = cluster_limits(proposal.cluster, policy)
    computed.predicted["dropped"] = len(dropped) + proposal.predicted.get("dropped", 0)
    return computed.columns() | {
        "base": proposal,
        "origin": Proposal.Origin.DERIVED,
        "state": Proposal.State.READY,
        "progress": 1.0,
        "requested_by": actor.name,
        "requested_at": timezone.now(),
        "traceparent": traces.current(),
        "four_eyes": policy.four_eyes,
    }


def supersede_rivals(approved: Proposal) -> int:
    """Supersede the alternatives of an approved proposal; return how many.

    Alternatives are the proposals of the same derivation, and the other candidates of their
    comparison. Runs in the caller's transaction.
    """
    family = _family(approved)
    comparisons = Proposal.objects.filter(pk__in=family, comparison__isnull=False)
    rivals = Proposal.objects.exclude(pk=approved.pk).filter(
        Q(pk__in=family) | Q(comparison__in=comparisons.values("comparison")),
        state__in=BY_NAME["supersede"].sources,
    )
    superseded = list(rivals.select_related("cluster"))
    for rival in superseded:
        move_on(WEIR, rival, "supersede", message=f"proposal {approved.pk} was chosen instead")
    return len(superseded)


def _family(proposal: Proposal) -> set[int]:
    """Return the ids of a base and of the proposals that were derived from it."""
    oldest = proposal
    while oldest.origin == Proposal.Origin.DERIVED and oldest.base is not None:
        oldest = oldest.base
    family, newest = set[int](), {oldest.pk}
    while newest:
        family |= newest
        derived = Proposal.objects.filter(base__in=newest, origin=Proposal.Origin.DERIVED)
        newest = set(derived.values_list("pk", flat=True)) - family
    return family
