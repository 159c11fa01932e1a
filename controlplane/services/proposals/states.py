"""The life of a proposal: which verb leads from where to where, and who may say it.

This table is the only place that says so: the services check it, the API and the pages offer what
it allows, and docs/proposals.md is written from it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from controlplane.models import Proposal
from controlplane.services.access import APPROVER, OPERATOR

State = Proposal.State


@dataclass(frozen=True)
class Verb:
    """What can be done to a proposal.

    `role`: who may, empty for what Weir does by itself. `seal`: whether it must name the seal,
    `reason` whether it must say why. `target` None leaves the state as it is. `about` says to a
    person what happens.
    """

    name: str
    sources: frozenset[State]
    target: State | None
    about: str
    role: str = ""
    seal: bool = False
    reason: bool = False

    @property
    def by_weir(self) -> bool:
        """Return whether no person says it."""
        return not self.role


def _verb(
    name: str, sources: Iterable[State], target: State | None, about: str, **more: object
) -> Verb:
    return Verb(name, frozenset(sources), target, about, **more)  # type: ignore[arg-type]


ACTIVE: Final = Proposal.ACTIVE
# States from which a routing version can still come without another approval.
APPROVED: Final = (State.APPROVED, *ACTIVE)
ENDED: Final = (
    State.DONE, State.REJECTED, State.STALE, State.FAILED, State.STOPPED, State.ROLLED_BACK,
    State.SUPERSEDED,
)  # fmt: skip

VERBS: Final = (
    _verb("computed", [State.COMPUTING], State.READY, "A worker has computed the plan"),
    _verb("fail", [State.COMPUTING, State.APPROVED, *ACTIVE], State.FAILED,
          "It could not be computed, or a step could not be carried out"),
    _verb("cancel", [State.COMPUTING], State.REJECTED, "Stop the computing", role=OPERATOR),
    _verb("reject", [State.READY], State.REJECTED, "Turn the plan down", role=APPROVER,
          reason=True),
    _verb("approve", [State.READY], State.APPROVED, "Let exactly these moves be carried out",
          role=APPROVER, seal=True),
    _verb("withdraw", [State.APPROVED], State.READY, "Take the approval back before it begins",
          role=APPROVER, reason=True),
    _verb("begin", [State.APPROVED], State.EXECUTING, "Carry it out, where it waits for that",
          role=OPERATOR, seal=True),
    _verb("start", [State.APPROVED], State.EXECUTING, "Carry out the first step"),
    _verb("outdate", [State.READY, State.APPROVED, State.EXECUTING, State.PAUSED], State.STALE,
          "The cluster has drifted from the snapshot by more than the policy tolerates"),
    _verb("supersede", [State.COMPUTING, State.READY, State.APPROVED], State.SUPERSEDED,
          "Another plan moved what this one speaks of, or was chosen instead"),
    _verb("pause", [State.EXECUTING], State.PAUSED, "Begin no further step until resumed",
          role=OPERATOR, reason=True),
    _verb("resume", [State.PAUSED], State.EXECUTING, "Go on with the next step", role=OPERATOR),
    _verb("finish step", [State.EXECUTING], None, "Stop once the step under way is done",
          role=OPERATOR, reason=True),
    _verb("stop", [State.EXECUTING, State.PAUSED], State.STOPPED,
          "Stop here: what has moved stays where it is", role=OPERATOR, reason=True),
    _verb("roll back", [State.EXECUTING, State.PAUSED, State.STOPPED, State.STALE, State.FAILED,
                        State.DONE],
          State.ROLLING_BACK, "Move back what has moved, the last first", role=OPERATOR,
          seal=True, reason=True),
    _verb("stopped after step", [State.EXECUTING], State.STOPPED, "The last step is done"),
    _verb("rolled back", [State.ROLLING_BACK], State.ROLLED_BACK, "All is back where it was"),
    _verb("finish", [State.EXECUTING], State.DONE, "All moves are carried out"),
)  # fmt: skip
BY_NAME: Final = {verb.name: verb for verb in VERBS}


def verbs_from(state: str) -> list[Verb]:
    """Return what people can do to a proposal in a state."""
    return [verb for verb in VERBS if state in verb.sources and not verb.by_weir]
