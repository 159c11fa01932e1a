"""One step in the life of a proposal: checked, conditional, audited and announced."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import APPROVER, Actor, Automatic, require
from controlplane.errors import Conflict, Invalid
from controlplane.events.publish import announce, event
from controlplane.models import Proposal
from controlplane.plans.plan import seal_of
from controlplane.plans.proposal_states import BY_NAME, Verb, verbs_from
from controlplane.policies.store import policy_of

# The actor of automatic transitions.
WEIR = Automatic("weir")


def move_on(
    actor: Actor,
    proposal: Proposal,
    name: str,
    *,
    named: str = "",
    reason: str = "",
    message: str = "",
    **columns: Any,
) -> Proposal:
    """Apply a verb to a proposal within the caller's transaction, and save the columns.

    `named`: the seal that the request names. Exactly one row changes, or none. Raises `Forbidden`,
    `Invalid` without a required reason, and `Conflict`: not_allowed (data: state and allowed
    verbs), wrong_seal.
    """
    verb = BY_NAME[name]
    _require(actor, proposal, verb, named, reason)
    before = proposal.state
    rows = Proposal.objects.filter(pk=proposal.pk, state__in=verb.sources)
    if verb.target is not None:
        columns["state"] = verb.target
    if not verb.by_weir and name != "approve":
        columns |= {"decided_by": actor.name, "decided_at": timezone.now()}
    changed = rows.update(**columns) if columns else int(rows.exists())
    _refresh(proposal, columns if changed == 1 else {})
    if changed != 1:
        raise _not_allowed(proposal, verb)
    _record(actor, proposal, verb, before, reason)
    sentence = proposal.state if verb.by_weir else f"{name} by {actor.name}"
    notify(proposal, message or sentence)
    return proposal


def unchanged(proposal: Proposal) -> bool:
    """Lock the proposal until the commit; return True if its state is unchanged."""
    rows = Proposal.objects.select_for_update().filter(pk=proposal.pk, state=proposal.state)
    return rows.values_list("pk", flat=True).first() is not None


def approver_role(proposal: Proposal) -> str:
    """Return the role that decides on a proposal."""
    return policy_of(proposal.cluster).approvers


def role_for(verb: Verb, proposal: Proposal) -> str:
    """Return the role that the cluster's policy requires for a verb."""
    return approver_role(proposal) if verb.role == APPROVER else verb.role


def allowed_verbs(actor: Actor, proposal: Proposal) -> list[Verb]:
    """Return the verbs that the actor may apply to the proposal now."""
    return [
        verb
        for verb in verbs_from(proposal.state)
        if actor.may(role_for(verb, proposal), proposal.cluster_id)
        and not (verb.name == "approve" and _is_own(actor, proposal))
    ]


def _require(actor: Actor, proposal: Proposal, verb: Verb, seal: str, reason: str) -> None:
    if not isinstance(actor, Automatic):
        require(actor, role_for(verb, proposal), proposal.cluster)
    if verb.reason and not reason.strip():
        raise Invalid({"reason": ["Enter a reason"]})
    # Concurrent decisions wait here, and then read the state that the first one has set.
    rows = Proposal.objects.select_for_update()
    proposal.refresh_from_db(fields=None if verb.seal else Proposal.light(), from_queryset=rows)
    if proposal.state not in verb.sources:
        raise _not_allowed(proposal, verb)
    if verb.seal:
        require_seal(proposal, seal)
    if verb.name == "approve" and _is_own(actor, proposal):
        message = "The policy requires another approver than the requester"
        raise Conflict("own_proposal", message, {"requested_by": proposal.requested_by})


def _refresh(proposal: Proposal, columns: Mapping[str, Any]) -> None:
    """Set the saved columns, and read all others except those that grow with the plan."""
    for name, value in columns.items():
        setattr(proposal, name, value)
    proposal.refresh_from_db(fields=[name for name in Proposal.light() if name not in columns])


def _is_own(actor: Actor, proposal: Proposal) -> bool:
    return proposal.four_eyes and actor.name == proposal.requested_by


def require_seal(proposal: Proposal, seal: str) -> None:
    """Raise `Conflict` unless the seal names exactly these actions and this snapshot."""
    row = proposal.snapshot_row
    holds = row is not None and row.is_whole and seal == seal_of(proposal.plan, row.digest)
    if not seal or seal != proposal.seal or not holds:
        raise Conflict(
            "wrong_seal", "The fingerprint does not name these actions", {"seal": proposal.seal}
        )


def _not_allowed(proposal: Proposal, verb: Verb) -> Conflict:
    allowed = [allowed_verb.name for allowed_verb in verbs_from(proposal.state)]
    message = f"The proposal is {proposal.state}: that does not allow “{verb.name}”"
    return Conflict("not_allowed", message, {"state": proposal.state, "allowed": allowed})


def _record(actor: Actor, proposal: Proposal, verb: Verb, before: str, reason: str) -> None:
    audit.record(
        actor,
        f"proposal.{verb.name.replace(' ', '_')}",
        str(proposal),
        cluster=proposal.cluster,
        reason=reason.strip() or proposal.error,
        before={"state": before},
        after={"state": proposal.state},
        seal=proposal.seal,
    )


def notify(
    proposal: Proposal, text: str, state: str | None = None, *, passing: bool = False
) -> None:
    """Publish an event after the commit; `state`: by default that of the proposal."""
    url = f"/clusters/{proposal.cluster.slug}/proposals/{proposal.pk}/"
    message = event(
        "proposal",
        f"Proposal {proposal.pk}: {text}",
        url=url,
        pk=proposal.pk,
        state=state or proposal.state,
    )
    announce(proposal.cluster_id, message, passing=passing)
