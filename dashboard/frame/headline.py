"""The headline of a page: one sentence, its level, its reason, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from controlplane.explain import Cause
from controlplane.explain.values import RankedChange, causes_text, named_changes

# Where a problem has no known cause.
NO_CAUSE: Final = "No change of the last half hour explains it."


@dataclass(frozen=True)
class Headline:
    """A sentence with its level, the reason below it, and at most one link.

    `grade`: good, warn, bad or info; "" for neither good nor bad. `chip`: the level in a few
    words. `causes`: those that `why` names, the likeliest first. `icon`: a drawing of
    `templatetags.design` instead of that of the level.
    """

    what: str
    why: str = ""
    grade: str = ""
    chip: str = ""
    icon: str = ""
    link: str = ""
    link_title: str = ""
    causes: Sequence[Cause] = ()

    @property
    def sentence(self) -> str:
        """Return `what` with its full stop."""
        return self.what if self.what.endswith((".", "!", "?")) else f"{self.what}."

    def explained(self, ranked: Sequence[RankedChange], otherwise: str = "") -> Self:
        """Return the headline with the likely causes before its reason; `otherwise`: without."""
        why = " ".join(filter(None, (causes_text(ranked) or otherwise, self.why)))
        return replace(self, why=why, causes=[row.cause for row in named_changes(ranked)])
