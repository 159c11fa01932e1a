"""Reconciliation of a cluster's driver with the desired one, in short non-blocking steps."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controlplane.processes.runtime.checks import is_full
from workers.agent import causes
from workers.agent.causes import KEPT, Death, Loop, loop_of
from workers.agent.driver import CommandFactory, Driver, DriverSpec, Site, checkpoint_of, end_strays
from workers.agent.heartbeats import Look, Observation, Unknown
from workers.agent.progress import Problem, Progress, Report, Timeouts, behind
from workers.agent.spare import Spare

FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0
# After a healthy minute, the next failure counts as the first.
HEALTHY_S: Final = 60.0


@dataclass(slots=True)
class BackOff:
    """A delay that doubles from a second to a minute, with jitter; none after the first failure."""

    chance: random.Random = field(default_factory=random.Random)
    deaths: int = 0

    def next_delay(self) -> float:
        """Count a failure and return the seconds to wait: 75 to 125 % of the doubled delay."""
        delay = min(LONGEST_S, FIRST_S * 2.0 ** min(self.deaths - 1, 10)) if self.deaths else 0.0
        self.deaths += 1
        return delay * self.chance.uniform(0.75, 1.25)

    def reset(self) -> None:
        """Reset the count of failures."""
        self.deaths = 0


@dataclass(slots=True)
class _DriverRun:
    """A driver from start to end; times are monotonic. `start`: the report of the start."""

    driver: Driver
    started_at: float
    progress: Progress
    start: str
    healthy_since: float | None = None
    ending_since: float | None = None


class Keeper:
    """The driver of a cluster; the agent calls `step` about once a second, with a monotonic time.

    `history`: the deaths of the last hour, ordered by time; `died`: called with each unexpected
    death; `spare`: returns a process that becomes the driver.
    """

    def __init__(
        self,
        cluster: str,
        site: Site,
        command: CommandFactory,
        look: Look,
        *,
        timeouts: Timeouts | None = None,
        backoff: BackOff | None = None,
        history: Sequence[Death] = (),
        died: Callable[[Death], None] = lambda _: None,
        spare: Callable[[DriverSpec], Spare | None] = lambda _: None,
    ) -> None:
        self.cluster = cluster
        self._site = site
        self._command = command
        self._look = look
        self._timeouts = timeouts or Timeouts()
        self._backoff = backoff or BackOff()
        self._deaths = list(history)[-KEPT:]
        self._died = died
        self._spare = spare
        self._loop: Loop | None = loop_of(self._deaths, time.time())
        self._run: _DriverRun | None = None
        self._due_at = 0.0
        self._checkpoint_is_free = False
        self._last = Report("stopped")

    @property
    def pid(self) -> int | None:
        """Return the driver's process id, None without a driver."""
        return self._run.driver.pid if self._run else None

    @property
    def progress(self) -> Progress | None:
        """Return the progress of the driver, None without a driver."""
        return self._run.progress if self._run else None

    def step(self, wanted: DriverSpec | None, now: float) -> Report:
        """Take a step towards the desired driver (None: no driver); return a report."""
        self._last = self._next(self._run, wanted, now)
        return self._in_loop(self._last)

    def has_ended(self) -> bool:
        """Return whether there is no driver."""
        return self._run is None

    def waits(self, now: float) -> bool:
        """Return whether there is no driver because of the back-off."""
        return self._run is None and now < self._due_at

    def kill(self) -> None:
        """Kill the driver."""
        run = self._run
        # Two threads may do so.
        if run is not None and run.driver.kill() and self._run is run:
            self._run = None

    def _next(self, run: _DriverRun | None, wanted: DriverSpec | None, now: float) -> Report:
        if run is None:
            return self._without_driver(wanted, now)
        if run.ending_since is not None:
            return self._while_ending(run.driver, now - run.ending_since, now)
        if run.driver.exit_code() is not None:
            return self._after_death(run, wanted, now)
        if wanted != run.driver.spec:
            return self._begin_to_end(run, wanted, now)
        return self._watch(run, now)

    def _in_loop(self, report: Report) -> Report:
        """Return the report, as that of a crash loop if there is one."""
        if self._loop is None or report.state not in {"starting", "failed"}:
            return report
        return Report("crash loop", f"{self._loop} ({report.detail})", self._loop.cause)

    def _without_driver(self, wanted: DriverSpec | None, now: float) -> Report:
        if not self._checkpoint_is_free:
            self._checkpoint_is_free = end_strays(self._site, self.cluster)
            if not self._checkpoint_is_free:
                return Report("failed", "processes of an earlier driver survive SIGKILL")
        if wanted is None:
            self._backoff.reset()
            self._loop = None
            self._due_at = now
            return Report("stopped")
        if now < self._due_at:
            return self._last
        return self._start(wanted, now)

    def _start(self, wanted: DriverSpec, now: float) -> Report:
        try:
            driver = Driver(wanted, self._site, self._command, self._spare)
        except OSError as error:
            cause = causes.cause_of(None, str(error))
            why = causes.NOT_STARTED if cause == causes.EXIT else cause
            return self._retry_later(self._death(None, why, f"cannot be started: {error}"), now)
        checkpoint = checkpoint_of(wanted, self._site).name
        start = f"start attempt {self._backoff.deaths + 1}" if self._backoff.deaths else ""
        self._run = _DriverRun(driver, now, Progress(self._timeouts, now, checkpoint), start)
        return Report("starting", start, "start")

    def _begin_to_end(self, run: _DriverRun, wanted: DriverSpec | None, now: float) -> Report:
        run.driver.request_stop()
        run.ending_since = now
        return replace(self._last, detail="ending" if wanted is None else "ending before a restart")

    def _while_ending(self, driver: Driver, waited: float, now: float) -> Report:
        if driver.exit_code() is None and waited < self._timeouts.ending:
            return self._last
        if not driver.kill():
            return Report("degraded", "processes of the driver survive SIGKILL")
        self._run = None
        self._due_at = now
        return Report("stopped")

    def _after_death(self, run: _DriverRun, wanted: DriverSpec | None, now: float) -> Report:
        code = run.driver.exit_code()
        if not run.driver.kill():
            return Report("failed", "processes of a dead driver survive SIGKILL")
        self._run = None
        if wanted is None:
            return Report("stopped")
        error = run.driver.last_error()
        cause, answer = causes.cause_of(code, error), causes.described(code, error)
        if cause == causes.EXIT and (known := self._surroundings(run)):
            cause, answer = known[0], f"{known[1]} ({answer})"
        return self._retry_later(self._death(run, cause, answer, code, now), now)

    def _surroundings(self, run: _DriverRun) -> tuple[str, str] | None:
        """Return a problem of Redis or of a disk as the cause: full disks truncate logs."""
        checkpoint = checkpoint_of(run.driver.spec, self._site)
        full = [item for item in (checkpoint.parent, self._site.data) if is_full(item)]
        if full:
            return causes.DISK, f"the disk of {full[0]} is full"
        try:
            observed = self._look(self.cluster, run.driver.spec.log_url)
        except Unknown:
            return None
        if not observed.problem:
            return None
        return observed.problem, f"Redis rejects writes: {observed.problem_text}"

    def _watch(self, run: _DriverRun, now: float) -> Report:
        try:
            result = self._look(self.cluster, run.driver.spec.log_url)
        except Unknown:
            # Its state is unknown, which is not a reason to kill it.
            run.progress.reset(now)
            return Report("degraded", "Redis does not respond", "redis-away")
        # The heartbeat of a dead driver expires after half a minute.
        own = result.beat is not None and result.beat.pid == run.driver.pid
        run.progress.note(result if own else replace(result, beat=None), now)
        if result.problem:
            run.progress.reset(now)
            run.healthy_since = None
            return Report(
                "degraded", f"Redis rejects writes: {result.problem_text}", result.problem
            )
        problem = run.progress.problem(now)
        if problem is not None and problem.fatal:
            return self._kill(run, problem, now)
        return self._assess(run, result, problem, now)

    def _assess(
        self, run: _DriverRun, observed: Observation, problem: Problem | None, now: float
    ) -> Report:
        beat = run.progress.beat
        if beat is None or not run.progress.runs:
            phase = f": {beat.phase}" if beat and beat.phase else ""
            return Report("starting", f"{run.start}{phase}", "start")
        if problem is not None:
            run.healthy_since = None
            hung = problem.cause in {causes.NO_PROGRESS, causes.JVM_SILENT}
            return Report("stuck" if hung else "degraded", problem.text, problem.cause)
        if beat.state not in {"running", "starting"}:
            return Report("degraded", beat.error or f"the driver reports: {beat.state}")
        self._note_health(run, observed, now)
        return behind(run.progress) or Report("running", beat.note)

    def _note_health(self, run: _DriverRun, observed: Observation, now: float) -> None:
        if run.healthy_since is None:
            run.healthy_since = now
        healthy = now - run.healthy_since >= HEALTHY_S
        if healthy:
            self._backoff.reset()
        if self._loop is not None:
            index = self._loop.batch
            over = healthy if index is None else observed.batch >= index
            self._loop = None if over else self._loop

    def _kill(self, run: _DriverRun, problem: Problem, now: float) -> Report:
        if not run.driver.kill():
            return Report("failed", "a silent driver survives SIGKILL")
        self._run = None
        death = self._death(run, problem.cause, f"{problem.text}: killed", None, now)
        return self._retry_later(death, now)

    def _death(
        self,
        run: _DriverRun | None,
        cause: str,
        detail: str,
        code: int | None = None,
        now: float = 0.0,
    ) -> Death:
        log_url = run.driver.spec.log_url if run else ""
        try:
            observed = self._look(self.cluster, log_url)
        except Unknown:
            # Its last observation.
            observed = run.progress.observed or Observation() if run else Observation()
        batch = observed.batch + 1 if observed.batch >= 0 else None
        uptime_s = now - run.started_at if run else 0.0
        return Death(time.time(), cause, detail, code, batch, observed.unread, uptime_s)

    def _retry_later(self, death: Death, now: float) -> Report:
        self._deaths = [*self._deaths, death][-KEPT:]
        self._died(death)
        self._loop = loop_of(self._deaths, death.at_s)
        delay = self._backoff.next_delay()
        self._due_at = now + delay
        why = f"{death.detail} (restart {self._backoff.deaths} in {delay:.0f} s)"
        return Report("failed", why, death.cause)
