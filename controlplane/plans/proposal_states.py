"""The life cycle of a proposal: its states, and the verbs that change them.

This is the only declaration: services, API, CLI and pages read it, and
docs/proposals.md is generated from it. Nothing here imports Django.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

OPERATOR: Final = "operator"
APPROVER: Final = "approver"


class State(StrEnum):
    """The state of a proposal."""

    COMPUTING = "computing"
    READY = "ready"
    NO_BETTER_PLAN = "no better plan"
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
    """An operation that changes the state of a proposal.

    `role`: the required role, empty for verbs of Weir itself. `seal`, `reason`: True if the request
    must contain it; `effect`: True if it may name the number of actions that it expects to be
    applied. `target`: the next state, None for no change. `about` describes the effect. `label`,
    `look` (primary, danger or empty): of the button; `question`: the title of the dialog that asks
    for confirmation, "" for none; `done`: the message afterwards. Buttons are in the order of
    `VERBS`.
    """

    name: str
    sources: frozenset[State]
    target: State | None
    about: str
    role: str = ""
    seal: bool = False
    reason: bool = False
    effect: bool = False
    label: str = ""
    done: str = ""
    look: str = ""
    question: str = ""

    @property
    def by_weir(self) -> bool:
        """Return True if only Weir applies the verb."""
        return not self.role

    @property
    def path(self) -> str:
        """Return the verb as in URLs and commands."""
        return self.name.replace(" ", "-")

    @property
    def confirm(self) -> str:
        """Return the label of the dialog's confirm button."""
        return self.label.rstrip("…")


def _verb(
    name: str, sources: Iterable[State], target: State | None, about: str, **more: Any
) -> Verb:
    if more.get("reason"):
        # Its button opens a dialog.
        more = {"question": f"{more['label']}?", **more, "label": f"{more['label']}…"}
    return Verb(name, frozenset(sources), target, about, **more)


# States in which actions may be in progress; a cluster has at most one such proposal.
ACTIVE: Final = (State.EXECUTING, State.PAUSED, State.ROLLING_BACK)
# States in which a proposal can publish routing versions without another approval.
APPROVED: Final = (State.APPROVED, *ACTIVE)
ENDED: Final = (
    State.DONE, State.REJECTED, State.STALE, State.FAILED, State.STOPPED, State.ROLLED_BACK,
    State.SUPERSEDED, State.NO_BETTER_PLAN,
)  # fmt: skip

VERBS: Final = (
    _verb("computed", [State.COMPUTING], State.READY, "A worker has computed the plan"),
    _verb(
        "find nothing better",
        [State.COMPUTING],
        State.NO_BETTER_PLAN,
        "The plan that was found is not better than the cluster as it is",
    ),
    _verb(
        "fail",
        [State.COMPUTING, State.APPROVED, *ACTIVE],
        State.FAILED,
        "The computation failed, or a step could not be applied",
    ),
    _verb(
        "cancel",
        [State.COMPUTING],
        State.REJECTED,
        "Cancel the computation",
        role=OPERATOR,
        label="Cancel",
        done="The computation is cancelled.",
    ),
    _verb(
        "approve",
        [State.READY],
        State.APPROVED,
        "Execute exactly these actions",
        role=APPROVER,
        seal=True,
        effect=True,
        label="Approve",
        done="Approved: exactly these actions are applied.",
        look="primary",
        question="Approve this plan?",
    ),
    _verb(
        "reject",
        [State.READY],
        State.REJECTED,
        "Reject the plan",
        role=APPROVER,
        reason=True,
        label="Reject",
        done="The proposal is rejected.",
        look="danger",
        question="Reject this plan?",
    ),
    _verb(
        "begin",
        [State.APPROVED],
        State.EXECUTING,
        "Start an approved proposal manually",
        role=OPERATOR,
        seal=True,
        label="Start",
        done="It starts with the first step.",
        look="primary",
    ),
    _verb(
        "withdraw",
        [State.APPROVED],
        State.READY,
        "Withdraw the approval before the start",
        role=APPROVER,
        reason=True,
        label="Withdraw approval",
        done="The approval is withdrawn.",
    ),
    _verb("start", [State.APPROVED], State.EXECUTING, "Apply the first step"),
    _verb(
        "mark stale",
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
        "Start no further step until resumed",
        role=OPERATOR,
        label="Pause now",
        done="Paused: no further step starts until it is resumed.",
    ),
    _verb(
        "resume",
        [State.PAUSED],
        State.EXECUTING,
        "Continue with the next step",
        role=OPERATOR,
        label="Resume",
        done="It continues with the next step.",
        look="primary",
    ),
    _verb(
        "finish step",
        [State.EXECUTING],
        None,
        "Stop after the step in progress",
        role=OPERATOR,
        reason=True,
        label="Stop after this step",
        done="It stops after the step in progress.",
    ),
    _verb(
        "stop",
        [State.EXECUTING, State.PAUSED],
        State.STOPPED,
        "Stop now and keep the applied actions",
        role=OPERATOR,
        label="Stop now",
        done="Stopped: the applied actions stay.",
        look="danger",
    ),
    _verb(
        "roll back",
        [State.EXECUTING, State.PAUSED, State.STOPPED, State.STALE, State.FAILED, State.DONE],
        State.ROLLING_BACK,
        "Revert the applied actions, the last one first",
        role=OPERATOR,
        seal=True,
        reason=True,
        label="Roll back",
        done="The applied actions are reverted, the last one first.",
        look="danger",
        question="Revert all applied actions?",
    ),
    _verb("stopped after step", [State.EXECUTING], State.STOPPED, "The last step is done"),
    _verb(
        "rolled back", [State.ROLLING_BACK], State.ROLLED_BACK, "All applied actions are reverted"
    ),
    _verb("finish", [State.EXECUTING], State.DONE, "All actions are applied or skipped"),
)
BY_NAME: Final = {verb.name: verb for verb in VERBS}


def verbs_from(state: str) -> list[Verb]:
    """Return the verbs that people can apply in a state."""
    return [verb for verb in VERBS if state in verb.sources and not verb.by_weir]


# The verbs of people, in the order of the table.
SAID: Final = tuple(verb for verb in VERBS if not verb.by_weir)
