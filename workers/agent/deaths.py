"""Unexpected ends of a cluster's driver, and crash loops."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workers.agent.causes import ADVICE

# Consecutive ends at one batch, or of one cause, that make a crash loop.
LOOP: Final = 3
WITHIN_S: Final = 3600.0
KEPT: Final = 50


@dataclass(frozen=True, slots=True)
class Death:
    """An unexpected end of a driver (`models.health.DriverRestart`); `at_s`: seconds since 1970."""

    at_s: float
    cause: str
    detail: str
    exit_code: int | None = None
    batch: int | None = None
    unread: int | None = None
    uptime_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Loop:
    """A crash loop: number of consecutive ends, their cause, and their batch if it is the same."""

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
    """Return the crash loop of the newest deaths (ordered by time), None without one.

    Ends at the same batch are a loop whatever their causes, and so are ends of the same cause.
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
    """Return the number of True values at the end."""
    return next((index for index, item in enumerate(reversed(same)) if not item), len(same))
