"""Reports of clusters, which the agent stores."""

from dataclasses import dataclass
from typing import Literal

from workers.agent.progress import Progress

State = Literal[
    "starting", "running", "catching up", "degraded", "stuck", "stopped", "failed", "crash loop",
    "needs decision",
]  # fmt: skip

# The time to read a backlog (s) from which on it is reported.
_BEHIND_S = 10.0


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a cluster: state, sentence, and the code of its subject."""

    state: State
    detail: str = ""
    code: str = ""

    @property
    def kind(self) -> tuple[str, str]:
        """Return a key that is equal for reports that differ in their numbers only."""
        return self.state, self.code or self.detail


def behind(progress: Progress) -> Report | None:
    """Return the report of a backlog of more than ten seconds, else None."""
    pace, seen = progress.pace(), progress.observed
    if pace is None or seen is None or not seen.unread or seen.unread <= pace.read * _BEHIND_S:
        return None
    if not pace.read:
        # `Progress.problem` detects stuck drivers.
        return None
    if pace.drained_s is None:
        trend = f"the backlog grows by {pace.grows:,.0f}/s"
    else:
        trend = f"drained in about {pace.drained_s:,.0f} s"
    detail = f"{seen.unread:,} records unread, {pace.read:,.0f}/s read, {trend}"
    return Report("catching up", detail, "backlog")
