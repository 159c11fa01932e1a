"""Saying a verb of the table to a proposal: one door for the API, the pages and the terminal.

A verb's path is its name with hyphens: “roll back” is said at roll-back.
"""

from collections.abc import Callable, Mapping
from typing import Final

from controlplane.errors import NotFound
from controlplane.models import Execution, Proposal
from controlplane.policies.store import policy_of
from controlplane.services import executions, proposals
from controlplane.services.access import Actor, require
from controlplane.services.proposals.states import ENDED, VERBS, State, Verb
from controlplane.services.proposals.transitions import role_for

# Asking anew makes another proposal and leaves this one as it is: whatever it came to.
ANEW_FROM: Final = (State.READY, *ENDED)

_Say = Callable[[Actor, Proposal, str, str], Proposal]
_SAYING: Final[Mapping[str, _Say]] = {
    "cancel": lambda actor, row, _, reason: proposals.cancel(actor, row, reason),
    "reject": lambda actor, row, _, reason: proposals.reject(actor, row, reason),
    "approve": proposals.approve,
    "withdraw": lambda actor, row, _, reason: proposals.withdraw(actor, row, reason),
    "begin": lambda actor, row, seal, _: executions.begin(actor, row, seal),
    "pause": lambda actor, row, _, reason: executions.pause(actor, row, reason),
    "resume": lambda actor, row, _, __: executions.resume(actor, row),
    "finish step": lambda actor, row, _, reason: executions.finish_step(actor, row, reason),
    "stop": lambda actor, row, _, reason: executions.stop(actor, row, reason),
    "roll back": executions.roll_back,
}
# What people can say, in the order of the table.
SAID: Final = tuple(verb for verb in VERBS if not verb.by_weir)


def path_of(verb: Verb) -> str:
    """Return the verb as a part of an address."""
    return verb.name.replace(" ", "-")


def verb_at(path: str) -> Verb:
    """Return the verb of a part of an address; raises `NotFound`."""
    for verb in SAID:
        if path_of(verb) == path:
            return verb
    raise NotFound("verb", path)


def say(
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
    found = proposals.allowed_verbs(actor, proposal)
    if policy_of(proposal.cluster).starts:
        found = [verb for verb in found if verb.name != "begin"]
    if not any(verb.name == "roll back" for verb in found):
        return found
    moved = Execution.objects.filter(proposal=proposal, done__gt=0).exists()
    return [verb for verb in found if moved or verb.name != "roll back"]


def may_ask_anew(actor: Actor, proposal: Proposal) -> bool:
    """Tell whether the actor may ask for the same plan on the cluster as it is now."""
    return proposal.state in ANEW_FROM and actor.may("operator", proposal.cluster_id)
