"""Application of verbs to proposals, for API, pages and CLI.

The path of a verb is its name with hyphens: roll-back.
"""

from collections.abc import Callable, Mapping
from typing import Final

from controlplane.access.roles import Actor, require
from controlplane.errors import NotFound
from controlplane.models import Execution, Proposal
from controlplane.plans.proposal_states import ENDED, SAID, State, Verb
from controlplane.policies.store import policy_of
from controlplane.proposals import decisions, transitions
from controlplane.proposals.executions import control, startup
from controlplane.proposals.transitions import role_for

# States in which the same plan can be requested again; the request changes no state.
ANEW_FROM: Final = (State.READY, *ENDED)

# Actor, proposal, seal, reason, number of applicable actions.
_Apply = Callable[[Actor, Proposal, str, str, int | None], Proposal]
_FUNCTIONS: Final[Mapping[str, _Apply]] = {
    "cancel": lambda actor, row, _, reason, __: decisions.cancel(actor, row, reason),
    "reject": lambda actor, row, _, reason, __: decisions.reject(actor, row, reason),
    "approve": decisions.approve,
    "withdraw": lambda actor, row, _, reason, __: decisions.withdraw(actor, row, reason),
    "begin": lambda actor, row, seal, _, __: startup.begin(actor, row, seal),
    "pause": lambda actor, row, _, reason, __: control.pause(actor, row, reason),
    "resume": lambda actor, row, _, __, ___: control.resume(actor, row),
    "finish step": lambda actor, row, _, reason, __: control.finish_step(actor, row, reason),
    "stop": lambda actor, row, _, reason, __: control.stop(actor, row, reason),
    "roll back": lambda actor, row, seal, reason, _: control.roll_back(actor, row, seal, reason),
}


def verb_at(path: str) -> Verb:
    """Return the verb of a path; raises `NotFound`."""
    for verb in SAID:
        if verb.path == path:
            return verb
    raise NotFound("verb", path)


def apply_verb(
    actor: Actor,
    proposal: Proposal,
    verb: Verb,
    *,
    seal: str = "",
    reason: str = "",
    applicable: int | None = None,
) -> Proposal:
    """Apply a verb; `applicable`: as in `decisions.approve`.

    Raises `Forbidden`, `Invalid` without a required reason, `Conflict`.
    """
    # A missing role takes precedence over other errors.
    require(actor, role_for(verb, proposal), proposal.cluster)
    return _FUNCTIONS[verb.name](actor, proposal, seal, reason, applicable)


def offered(actor: Actor, proposal: Proposal) -> list[Verb]:
    """Return the verbs that the actor may apply now.

    Omits "roll back" if no action was applied, and "begin" if the policy starts proposals.
    """
    allowed = transitions.allowed_verbs(actor, proposal)
    if policy_of(proposal.cluster).starts:
        allowed = [verb for verb in allowed if verb.name != "begin"]
    if not any(verb.name == "roll back" for verb in allowed):
        return allowed
    moved = Execution.objects.filter(proposal=proposal, done__gt=0).exists()
    return [verb for verb in allowed if moved or verb.name != "roll back"]


def may_request_again(actor: Actor, proposal: Proposal) -> bool:
    """Return whether the actor may request the same plan again."""
    return proposal.state in ANEW_FROM and actor.may("operator", proposal.cluster_id)
