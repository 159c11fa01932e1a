"""The ends of a cluster's driver that nobody requested, and whether they are a crash loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workers.agent.causes import ADVICE

# So many ends in a row at one batch, or of one cause, are a loop.
LOOP: Final = 3
WITHIN_S: Final = 3600.0
KEPT: Final = 50


@dataclass(frozen=True, slots=True)
class Death:
    """One end of a driver: see `models.health.DriverRestart`; `at_s` in seconds since 1970."""

    at_s: float
    cause: str
    detail: str
    exit_code: int | None = None
    batch: int | None = None
    unread: int | None = None
    uptime_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Loop:
    """A crash loop: how many ends in a row, their cause, and the batch where it is one batch."""

    count: int
    cause: str
    detail: str
    batch: int | None

    def __str__(self) -> str:
        what = "the driver" if self.batch is None else f"batch {self.batch}"
        how = "has ended" if self.batch is None else "has ended the driver"
        advice = ADVICE.get(self.cause, ADVICE["exit"])
        return f"{what} {how} {self.count} times: {self.detail} [{self.cause}]. {advice}"


def loop_of(deaths: Sequence[Death], now_s: float) -> Loop | None:
    """Return the crash loop that the newest deaths, oldest first, are; None if they are none.

    One batch that ends the driver again and again is a loop whatever the causes; otherwise one
    cause is.
    """
    recent = [death for death in deaths if now_s - death.at_s <= WITHIN_S]
    if not recent:
        return None
    last = recent[-1]
    same_batch = _in_a_row([death.batch == last.batch for death in recent])
    same_cause = _in_a_row([death.cause == last.cause for death in recent])
    if last.batch is not None and same_batch >= LOOP:
        return Loop(same_batch, last.cause, last.detail, last.batch)
    if same_cause >= LOOP:
        return Loop(same_cause, last.cause, last.detail, None)
    return None


def _in_a_row(same: Sequence[bool]) -> int:
    """Return how many at the end are True."""
    return next((index for index, item in enumerate(reversed(same)) if not item), len(same))
