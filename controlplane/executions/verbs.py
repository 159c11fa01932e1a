"""Saying a verb of the table to a proposal: one door for the API, the pages and the terminal.

A verb's path is its name with hyphens: “roll back” is said at roll-back.
"""

from collections.abc import Callable, Mapping
from typing import Final

from controlplane.access.roles import Actor, require
from controlplane.errors import NotFound
from controlplane.executions import control, startup
from controlplane.models import Execution, Proposal
from controlplane.plans.proposal_states import ENDED, SAID, State, Verb
from controlplane.policies.store import policy_of
from controlplane.proposals import decisions, transitions
from controlplane.proposals.transitions import role_for

# Asking anew makes another proposal and leaves this one as it is: whatever it came to.
ANEW_FROM: Final = (State.READY, *ENDED)

_Say = Callable[[Actor, Proposal, str, str], Proposal]
_SAYING: Final[Mapping[str, _Say]] = {
    "cancel": lambda actor, row, _, reason: decisions.cancel(actor, row, reason),
    "reject": lambda actor, row, _, reason: decisions.reject(actor, row, reason),
    "approve": decisions.approve,
    "withdraw": lambda actor, row, _, reason: decisions.withdraw(actor, row, reason),
    "begin": lambda actor, row, seal, _: startup.begin(actor, row, seal),
    "pause": lambda actor, row, _, reason: control.pause(actor, row, reason),
    "resume": lambda actor, row, _, __: control.resume(actor, row),
    "finish step": lambda actor, row, _, reason: control.finish_step(actor, row, reason),
    "stop": lambda actor, row, _, reason: control.stop(actor, row, reason),
    "roll back": control.roll_back,
}


def verb_at(path: str) -> Verb:
    """Return the verb of a part of an address; raises `NotFound`."""
    for verb in SAID:
        if verb.path == path:
            return verb
    raise NotFound("verb", path)


def apply_verb(
    actor: Actor, proposal: Proposal, verb: Verb, *, seal: str = "", reason: str = ""
) -> Proposal:
    """Say a verb. Raises `Forbidden`, `Invalid` where a reason is missing, `Conflict`."""
    # Who may not say it is told that, not what else stands in the way.
    require(actor, role_for(verb, proposal), proposal.cluster)
    return _SAYING[verb.name](actor, proposal, seal, reason)


def offered(actor: Actor, proposal: Proposal) -> list[Verb]:
    """Return the verbs that the actor may say now.

    No way back is offered from nothing, and no beginning of what begins by itself.
    """
    found = transitions.allowed_verbs(actor, proposal)
    if policy_of(proposal.cluster).starts:
        found = [verb for verb in found if verb.name != "begin"]
    if not any(verb.name == "roll back" for verb in found):
        return found
    moved = Execution.objects.filter(proposal=proposal, done__gt=0).exists()
    return [verb for verb in found if moved or verb.name != "roll back"]


def may_request_again(actor: Actor, proposal: Proposal) -> bool:
    """Tell whether the actor may ask for the same plan on the cluster as it is now."""
    return proposal.state in ANEW_FROM and actor.may("operator", proposal.cluster_id)
