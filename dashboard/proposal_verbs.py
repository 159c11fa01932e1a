"""The verbs of a proposal as buttons: their words, and which of them take a second click."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.services.proposals.states import Verb
from controlplane.services.verbs import path_of


@dataclass(frozen=True)
class Words:
    """What a button says, what the page says once it is done, and how it looks.

    `look`: primary, danger or empty. `question` heads the dialog of a verb that asks again.
    """

    label: str
    done: str
    look: str = ""
    question: str = ""


WORDS: Final[Mapping[str, Words]] = {
    "cancel": Words("Cancel", "The computation is cancelled."),
    "approve": Words("Approve", "Approved: exactly these moves are carried out.", "primary"),
    "begin": Words("Begin", "It begins with the first step.", "primary"),
    "reject": Words("Reject…", "The proposal is rejected.", "danger", "Reject this plan?"),
    "withdraw": Words(
        "Withdraw the approval…", "The approval is taken back.", "", "Take the approval back?"
    ),
    "pause": Words("Pause…", "No further step begins until it is resumed.", "", "Pause?"),
    "resume": Words("Resume", "It goes on with the next step.", "primary"),
    "finish step": Words(
        "Stop after this step…", "It stops once the step under way is done.", "",
        "Stop after this step?",
    ),
    "stop": Words(
        "Stop here…", "Stopped: what has moved stays where it is.", "danger", "Stop here?"
    ),
    "roll back": Words(
        "Roll back…", "What has moved is moved back, the last first.", "danger", "Move it all back?"
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Button:
    """A verb as the page offers it: at once, or in a dialog that asks again."""

    verb: Verb
    words: Words

    @property
    def path(self) -> str:
        """Return its part of the address."""
        return path_of(self.verb)

    @property
    def asks(self) -> bool:
        """Tell whether a dialog asks again, mostly for the reason."""
        return bool(self.words.question)

    @property
    def confirm(self) -> str:
        """Return what the second button says."""
        return self.words.label.rstrip("…")


def buttons(verbs: Sequence[Verb]) -> list[Button]:
    """Return what the page offers, in the order of the words here: what goes on comes first."""
    rank = {name: at for at, name in enumerate(WORDS)}
    ordered = sorted(verbs, key=lambda verb: rank[verb.name])
    return [Button(verb, WORDS[verb.name]) for verb in ordered]
