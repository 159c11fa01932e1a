"""Progress of a driver, measured with a monotonic clock, and the reports that the agent stores.

Heartbeats show that the Python process is alive, responses of the JVM that Spark's process is; only
finished micro-batches and finished steps of a batch show progress. Until the first batch, which
loads Spark and the state of nodes, every change that the driver reports counts as progress: a busy
machine may take minutes between two of them.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from workers.agent import causes
from workers.agent.heartbeats import Heartbeat, Observation

# The period of rates.
_PERIOD_S: Final = 60.0
State = Literal[
    "starting", "running", "catching up", "degraded", "stuck", "stopped", "failed", "crash loop",
    "needs decision",
]  # fmt: skip

# The time to read a backlog (s) from which on it is reported.
_BEHIND_S: Final = 10.0


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


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds.

    `start`: until the first finished batch, without any change that the driver reports; the next
    three hold from then on. `late`: until the state is stuck or degraded; `dead`: without a
    heartbeat or a response of the JVM; `progress`: with work, but without a finished batch or step;
    `batch`: of a batch, also the first one with the start, whatever its steps; `ending`: from
    SIGTERM to SIGKILL; `unobserved`: the longest time between two observations that counts, as the
    agent may have been stopped itself.
    """

    start: float = 600.0
    late: float = 15.0
    dead: float = 60.0
    progress: float = 60.0
    batch: float = 1800.0
    ending: float = 15.0
    unobserved: float = 10.0


class Problem(NamedTuple):
    """A problem of a driver: the code of its cause, and whether to kill the driver."""

    cause: str
    fatal: bool
    text: str


class Pace(NamedTuple):
    """Records/s read, records/s by which the backlog grows, and seconds until it is empty.

    `drained_s` is None if the backlog does not shrink.
    """

    read: float
    grows: float
    drained_s: float | None


class _Point(NamedTuple):
    time_s: float
    total: int
    unread: int


@dataclass(slots=True)
class Progress:
    """The progress of a driver; times are monotonic.

    `checkpoint`: the name of the driver's checkpoint; `runs`: whether this driver has finished a
    batch, or Spark runs and there was no work for one; `finished`: whether it has finished a batch.
    """

    timeouts: Timeouts
    started_at: float
    checkpoint: str = ""
    beat_at: float = field(init=False)
    jvm_at: float = field(init=False)
    step_at: float = field(init=False)
    batch_at: float = field(init=False)
    sign_at: float = field(init=False)
    beat: Heartbeat | None = None
    observed: Observation | None = None
    runs: bool = False
    finished: bool = False
    _noted_at: float | None = None
    _points: deque[_Point] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.reset(self.started_at)

    def reset(self, now: float) -> None:
        """Restart all timeouts, as the driver could not be observed."""
        self.beat_at = self.jvm_at = self.step_at = self.batch_at = self.sign_at = now

    def note(self, observed: Observation, now: float) -> None:
        """Add an observation; `observed.beat`: of this driver or None."""
        self._excuse(now)
        if observed.beat is not None:
            self._note_beat(observed.beat, now)
        before = self.observed
        self.finished |= before is not None and observed.batch > before.batch
        if before is None or not (observed.has_work and before.has_work):
            # Without work, no batch is late.
            self.step_at = self.batch_at = now
        elif observed.batch != before.batch:
            self.step_at = self.batch_at = now
        elif observed.steps != before.steps:
            self.step_at = now
        beats = self.beat is not None and self.beat.state == "running"
        self.runs |= self.finished or (beats and not observed.has_work)
        changed = before is not None and _signs(observed) != _signs(before)
        if changed or (self.runs and not observed.has_work):
            self.sign_at = now
        self.observed = observed
        self._measure(observed, now)

    def _excuse(self, now: float) -> None:
        """Extend all timeouts by the time in which this process observed nothing."""
        gap = 0.0 if self._noted_at is None else now - self._noted_at - self.timeouts.unobserved
        self._noted_at = now
        if gap > 0:
            self.beat_at, self.jvm_at = self.beat_at + gap, self.jvm_at + gap
            self.step_at, self.batch_at = self.step_at + gap, self.batch_at + gap
            self.sign_at += gap
            self._points.clear()

    def problem(self, now: float) -> Problem | None:
        """Return the worst problem of the driver, None without one."""
        if self._is_first_batch:
            return self._slow_start(now)
        limit = self.timeouts.dead
        if result := self._silence(causes.NO_HEARTBEAT, "no heartbeat", now - self.beat_at, limit):
            return result
        if self.beat is not None and self.beat.jvm_ms:
            text = "the JVM has not responded"
            silent = now - self.jvm_at
            if result := self._silence(causes.JVM_SILENT, text, silent, limit):
                return result
        return self._stalled(now)

    @property
    def _is_first_batch(self) -> bool:
        """Return whether Spark starts, or its first batch, which no other has measured."""
        idle = self.runs and self.observed is not None and not self.observed.has_work
        return not self.finished and not idle

    def pace(self) -> Pace | None:
        """Return the rates of the backlog, None before they are known."""
        if len(self._points) < 2:  # noqa: PLR2004 - a rate has two ends
            return None
        first, last = self._points[0], self._points[-1]
        seconds = last.time_s - first.time_s
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
        self.beat = beat

    def _slow_start(self, now: float) -> Problem | None:
        silent, waited = now - self.sign_at, now - self.batch_at
        if silent <= self.timeouts.start and waited <= self.timeouts.batch:
            return None
        text = f"no batch has finished after {waited:.0f} s; nothing has changed for {silent:.0f} s"
        return Problem(causes.SLOW_START, fatal=True, text=text)

    def _silence(self, cause: str, text: str, silent: float, limit: float) -> Problem | None:
        if silent <= min(self.timeouts.late, limit):
            return None
        return Problem(cause, silent > limit, f"{text} for {silent:.0f} s")

    def _stalled(self, now: float) -> Problem | None:
        if self.observed is None or not self.observed.has_work:
            return None
        long = now - self.batch_at
        if long > self.timeouts.batch:
            text = f"the batch after {self.observed.batch} has not finished after {long:.0f} s"
            return Problem(causes.SLOW_BATCH, fatal=True, text=text)
        what = f"{_todo(self.observed)}: no step of a batch has finished"
        limit = self.timeouts.progress
        return self._silence(causes.NO_PROGRESS, what, now - self.step_at, limit)

    def _measure(self, observed: Observation, now: float) -> None:
        if observed.unread is None:
            return
        self._points.append(_Point(now, observed.total, observed.unread))
        while now - self._points[0].time_s > _PERIOD_S:
            self._points.popleft()


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


def _signs(observed: Observation) -> tuple[object, ...]:
    """Return what changes while a driver starts: its phase, and the steps of its first batch."""
    beat = observed.beat
    return observed.steps, observed.batch, beat and (beat.state, beat.phase, beat.jvm_ms > 0)


def _todo(observed: Observation) -> str:
    if observed.unread:
        return f"{observed.unread:,} records unread"
    if observed.waiting:
        return f"{observed.waiting:,} records wait at nodes"
    return f"routing version {observed.routed} not applied"
