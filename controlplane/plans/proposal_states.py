"""The life of a proposal: its states, and the verbs that lead from one to another.

This is the only declaration: services check it, API, CLI and pages offer what it allows, and
docs/proposals.md is generated from it. Nothing here imports Django.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

OPERATOR: Final = "operator"
APPROVER: Final = "approver"


class State(StrEnum):
    """Where a proposal is in its life."""

    COMPUTING = "computing"
    READY = "ready"
    APPROVED = "approved"
    EXECUTING = "executing"
    PAUSED = "paused"
    DONE = "done"
    REJECTED = "rejected"
    STALE = "stale"
    FAILED = "failed"
    STOPPED = "stopped"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Verb:
    """What can be done to a proposal.

    `role`: who may, empty for what Weir does itself. `seal`: True if the seal must be named;
    `reason`: True if a reason must be given. `target` None leaves the state as it is. `about`
    describes the effect. `label`: of the button, which has a `look` (primary, danger or empty);
    `done`: what the page reports afterwards; `question`: title of the dialog that asks again.
    `rank`: place of the button, the verbs that go on first.
    """

    name: str
    sources: frozenset[State]
    target: State | None
    about: str
    role: str = ""
    seal: bool = False
    reason: bool = False
    label: str = ""
    done: str = ""
    look: str = ""
    question: str = ""
    rank: int = 0

    @property
    def by_weir(self) -> bool:
        """Return True if only Weir applies the verb."""
        return not self.role

    @property
    def path(self) -> str:
        """Return the verb as a part of an address and as a command."""
        return self.name.replace(" ", "-")

    @property
    def confirm(self) -> str:
        """Return the label of the dialog's button."""
        return self.label.rstrip("…")


def _verb(
    name: str, sources: Iterable[State], target: State | None, about: str, **more: Any
) -> Verb:
    return Verb(name, frozenset(sources), target, about, **more)


# States in which actions are or may be under way; a cluster has one such proposal at most.
ACTIVE: Final = (State.EXECUTING, State.PAUSED, State.ROLLING_BACK)
# States from which a routing version can still come without another approval.
APPROVED: Final = (State.APPROVED, *ACTIVE)
ENDED: Final = (
    State.DONE, State.REJECTED, State.STALE, State.FAILED, State.STOPPED, State.ROLLED_BACK,
    State.SUPERSEDED,
)  # fmt: skip

VERBS: Final = (
    _verb("computed", [State.COMPUTING], State.READY, "A worker has computed the plan"),
    _verb(
        "fail",
        [State.COMPUTING, State.APPROVED, *ACTIVE],
        State.FAILED,
        "It could not be computed, or a step could not be applied",
    ),
    _verb(
        "cancel",
        [State.COMPUTING],
        State.REJECTED,
        "Stop the computing",
        role=OPERATOR,
        label="Cancel",
        done="The computation is cancelled.",
        rank=1,
    ),
    _verb(
        "reject",
        [State.READY],
        State.REJECTED,
        "Turn the plan down",
        role=APPROVER,
        reason=True,
        label="Reject…",
        done="The proposal is rejected.",
        look="danger",
        question="Reject this plan?",
        rank=4,
    ),
    _verb(
        "approve",
        [State.READY],
        State.APPROVED,
        "Execute exactly these actions",
        role=APPROVER,
        seal=True,
        label="Approve",
        done="Approved: exactly these actions are applied.",
        look="primary",
        rank=2,
    ),
    _verb(
        "withdraw",
        [State.APPROVED],
        State.READY,
        "Take the approval back before it begins",
        role=APPROVER,
        reason=True,
        label="Withdraw the approval…",
        done="The approval is taken back.",
        question="Take the approval back?",
        rank=5,
    ),
    _verb(
        "begin",
        [State.APPROVED],
        State.EXECUTING,
        "Start an approved proposal manually",
        role=OPERATOR,
        seal=True,
        label="Begin",
        done="It begins with the first step.",
        look="primary",
        rank=3,
    ),
    _verb("start", [State.APPROVED], State.EXECUTING, "Apply the first step"),
    _verb(
        "outdate",
        [State.READY, State.APPROVED, State.EXECUTING, State.PAUSED],
        State.STALE,
        "The cluster has drifted from the snapshot by more than the policy tolerates",
    ),
    _verb(
        "supersede",
        [State.COMPUTING, State.READY, State.APPROVED],
        State.SUPERSEDED,
        "Another plan changed the same objects, or was chosen instead",
    ),
    _verb(
        "pause",
        [State.EXECUTING],
        State.PAUSED,
        "Begin no further step until resumed",
        role=OPERATOR,
        reason=True,
        label="Pause…",
        done="No further step begins until it is resumed.",
        question="Pause?",
        rank=6,
    ),
    _verb(
        "resume",
        [State.PAUSED],
        State.EXECUTING,
        "Go on with the next step",
        role=OPERATOR,
        label="Resume",
        done="It goes on with the next step.",
        look="primary",
        rank=7,
    ),
    _verb(
        "finish step",
        [State.EXECUTING],
        None,
        "Stop once the step under way is done",
        role=OPERATOR,
        reason=True,
        label="Stop after this step…",
        done="It stops once the step under way is done.",
        question="Stop after this step?",
        rank=8,
    ),
    _verb(
        "stop",
        [State.EXECUTING, State.PAUSED],
        State.STOPPED,
        "Stop here: what was applied stays",
        role=OPERATOR,
        reason=True,
        label="Stop here…",
        done="Stopped: what was applied stays.",
        look="danger",
        question="Stop here?",
        rank=9,
    ),
    _verb(
        "roll back",
        [State.EXECUTING, State.PAUSED, State.STOPPED, State.STALE, State.FAILED, State.DONE],
        State.ROLLING_BACK,
        "Revert the applied actions, the last first",
        role=OPERATOR,
        seal=True,
        reason=True,
        label="Roll back…",
        done="The applied actions are reverted, the last first.",
        look="danger",
        question="Revert all applied actions?",
        rank=10,
    ),
    _verb("stopped after step", [State.EXECUTING], State.STOPPED, "The last step is done"),
    _verb(
        "rolled back", [State.ROLLING_BACK], State.ROLLED_BACK, "All applied actions are reverted"
    ),
    _verb("finish", [State.EXECUTING], State.DONE, "All actions are applied or skipped"),
)
BY_NAME: Final = {verb.name: verb for verb in VERBS}


def verbs_from(state: str) -> list[Verb]:
    """Return what people can do to a proposal in a state."""
    return [verb for verb in VERBS if state in verb.sources and not verb.by_weir]


# What people can say, in the order of the table.
SAID: Final = tuple(verb for verb in VERBS if not verb.by_weir)
