"""Whether a driver makes progress: batches against what there is to do, by a monotonic clock.

A heartbeat shows that the driver's Python process lives, the answers of its JVM that Spark's
process does; only finished micro-batches, and finished steps of one, show that records are
processed.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from workers.agent import causes
from workers.agent.heartbeats import Heartbeat, Seen

# The time over which rates are measured.
_SPAN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds, before something is wrong.

    first_beat: until the first heartbeat; start: until the streaming query runs; late: shown as
    stuck or degraded; dead: without a heartbeat or an answer of the JVM; progress: with something
    to do and neither a batch nor a step of one finished; batch: for one batch, whatever steps it
    finishes; ending: from the request to end until -9.
    """

    first_beat: float = 180.0
    start: float = 300.0
    late: float = 15.0
    dead: float = 60.0
    progress: float = 60.0
    batch: float = 1800.0
    ending: float = 15.0


class Wrong(NamedTuple):
    """What is wrong with a driver: the code of its cause, and whether to kill the driver."""

    cause: str
    fatal: bool
    text: str


class Pace(NamedTuple):
    """Records/s that batches read, records/s by which the backlog grows, and s until it is gone.

    `drained_s` is None if the backlog does not shrink.
    """

    read: float
    grows: float
    drained_s: float | None


class _Point(NamedTuple):
    at: float
    total: int
    unread: int


@dataclass(slots=True)
class Progress:
    """The signs of life of one driver; times are those of a monotonic clock.

    `checkpoint`: the name of the driver's checkpoint; `finished`: whether a batch has finished
    since the first look, so one of this driver.
    """

    patience: Patience
    begun_at: float
    checkpoint: str = ""
    beat_at: float = field(init=False)
    jvm_at: float = field(init=False)
    step_at: float = field(init=False)
    batch_at: float = field(init=False)
    beat: Heartbeat | None = None
    seen: Seen | None = None
    runs: bool = False
    finished: bool = False
    _points: deque[_Point] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.beat_at = self.jvm_at = self.step_at = self.batch_at = self.begun_at

    def excuse(self, now: float) -> None:
        """Count no silence up to now: nobody could hear anything."""
        self.beat_at = self.jvm_at = self.step_at = self.batch_at = now

    def note(self, seen: Seen, now: float) -> None:
        """Take what is seen of the driver; `seen.beat` is its own or None."""
        if seen.beat is not None:
            self._note_beat(seen.beat, now)
        before = self.seen
        self.finished |= before is not None and seen.batch > before.batch
        if before is None or not (seen.work and before.work):
            # Before there was something to do, nothing could be late.
            self.step_at = self.batch_at = now
        elif seen.batch != before.batch:
            self.runs, self.step_at, self.batch_at = True, now, now
        elif seen.steps != before.steps:
            self.step_at = now
        self.seen = seen
        self._measure(seen, now)

    def wrong(self, now: float) -> Wrong | None:
        """Return what is wrong with the driver, the worst first; None if nothing is."""
        limit = self.patience.dead if self.beat else self.patience.first_beat
        if result := self._silence(causes.NO_HEARTBEAT, "no heartbeat", now - self.beat_at, limit):
            return result
        if self.beat is not None and self.beat.jvm_ms:
            text = "the JVM has not answered"
            silent = now - self.jvm_at
            if result := self._silence(causes.JVM_SILENT, text, silent, self.patience.dead):
                return result
        return self._stalled(now) if self.runs else self._slow_start(now)

    def pace(self) -> Pace | None:
        """Return how fast the backlog is read, None before that is known."""
        if len(self._points) < 2:  # noqa: PLR2004 - a rate has two ends
            return None
        first, last = self._points[0], self._points[-1]
        seconds = last.at - first.at
        if seconds <= 0 or last.total < first.total:
            return None
        grows = (last.unread - first.unread) / seconds
        return Pace(
            (last.total - first.total) / seconds, grows, last.unread / -grows if grows < 0 else None
        )

    def _note_beat(self, beat: Heartbeat, now: float) -> None:
        if self.beat is None or beat.beat_ms != self.beat.beat_ms:
            self.beat_at = now
        if self.beat is None or beat.jvm_ms != self.beat.jvm_ms:
            self.jvm_at = now
        if beat.state == "running" and not self.runs:
            # The start has a patience of its own: its seconds do not count as ones without a step.
            self.runs, self.step_at, self.batch_at = True, now, now
        self.beat = beat

    def _slow_start(self, now: float) -> Wrong | None:
        waited = now - max(self.begun_at, self.step_at if self.seen and self.seen.work else 0.0)
        if waited <= self.patience.start:
            return None
        text = f"the streaming query does not run after {waited:.0f} s"
        return Wrong(causes.SLOW_START, fatal=True, text=text)

    def _silence(self, cause: str, text: str, silent: float, limit: float) -> Wrong | None:
        if silent <= min(self.patience.late, limit):
            return None
        return Wrong(cause, silent > limit, f"{text} for {silent:.0f} s")

    def _stalled(self, now: float) -> Wrong | None:
        if self.seen is None or not self.seen.work:
            return None
        long = now - self.batch_at
        if long > self.patience.batch:
            text = f"the batch after {self.seen.batch} has not finished after {long:.0f} s"
            return Wrong(causes.SLOW_BATCH, fatal=True, text=text)
        what = f"{_todo(self.seen)}: no step of a batch has finished"
        limit = self.patience.progress
        return self._silence(causes.NO_PROGRESS, what, now - self.step_at, limit)

    def _measure(self, seen: Seen, now: float) -> None:
        if seen.unread is None:
            return
        self._points.append(_Point(now, seen.total, seen.unread))
        while now - self._points[0].at > _SPAN_S:
            self._points.popleft()


def _todo(seen: Seen) -> str:
    if seen.unread:
        return f"{seen.unread:,} records unread"
    if seen.waiting:
        return f"{seen.waiting:,} records wait at nodes"
    return f"routing version {seen.routed} not applied"
