"""Reconciles one cluster's driver with the wanted one, in short steps that do not block."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from controlplane.runtime.checks import is_full
from workers.agent import causes
from workers.agent.backoff import HEALTHY_S, BackOff
from workers.agent.deaths import KEPT, Death, Loop, loop_of
from workers.agent.driver import CommandFactory, Driver, DriverSpec, Site, checkpoint_of, end_strays
from workers.agent.heartbeats import Look, Seen, Unknown
from workers.agent.progress import Patience, Progress, Wrong
from workers.agent.report import Report, behind

__all__ = ["Keeper", "Patience", "Report"]


@dataclass(slots=True)
class _Life:
    """One driver from start to end; times are those of the monotonic clock."""

    driver: Driver
    begun_at: float
    progress: Progress
    healthy_since: float | None = None
    ending_since: float | None = None


class Keeper:
    """The driver of one cluster; `step` is called about once a second with a monotonic clock.

    `history`: the driver's deaths of the last hour, oldest first; `died` is called with each death
    that nobody requested.
    """

    def __init__(
        self,
        cluster: str,
        site: Site,
        command: CommandFactory,
        look: Look,
        *,
        patience: Patience | None = None,
        backoff: BackOff | None = None,
        history: Sequence[Death] = (),
        died: Callable[[Death], None] = lambda _: None,
    ) -> None:
        self.cluster = cluster
        self._site = site
        self._command = command
        self._look = look
        self._patience = patience or Patience()
        self._backoff = backoff or BackOff()
        self._deaths = list(history)[-KEPT:]
        self._died = died
        self._loop: Loop | None = loop_of(self._deaths, time.time())
        self._life: _Life | None = None
        self._due_at = 0.0
        self._checkpoint_is_free = False
        self._last = Report("stopped")

    @property
    def pid(self) -> int | None:
        """The driver's process id, while there is one."""
        return self._life.driver.pid if self._life else None

    @property
    def progress(self) -> Progress | None:
        """The progress of the driver, while there is one."""
        return self._life.progress if self._life else None

    def step(self, wanted: DriverSpec | None, now: float) -> Report:
        """Take one step from the driver to `wanted` (None: no driver); return a report."""
        self._last = self._next(self._life, wanted, now)
        return self._in_loop(self._last)

    def has_ended(self) -> bool:
        """Return whether there is no driver."""
        return self._life is None

    def waits(self, now: float) -> bool:
        """Return whether there is no driver and the pause before the next start is not over."""
        return self._life is None and now < self._due_at

    def kill(self) -> None:
        """End the driver immediately."""
        if self._life is not None and self._life.driver.kill():
            self._life = None

    def _next(self, life: _Life | None, wanted: DriverSpec | None, now: float) -> Report:
        if life is None:
            return self._without_driver(wanted, now)
        if life.ending_since is not None:
            return self._while_ending(life.driver, now - life.ending_since, now)
        if life.driver.exit_code() is not None:
            return self._after_death(life, wanted, now)
        if wanted != life.driver.spec:
            return self._begin_to_end(life, wanted, now)
        return self._watch(life, now)

    def _in_loop(self, report: Report) -> Report:
        """Return the report, as one of a crash loop where there is one."""
        if self._loop is None or report.state not in {"starting", "failed"}:
            return report
        return Report("crash loop", f"{self._loop} ({report.detail})", self._loop.cause)

    def _without_driver(self, wanted: DriverSpec | None, now: float) -> Report:
        if not self._checkpoint_is_free:
            self._checkpoint_is_free = end_strays(self._site, self.cluster)
            if not self._checkpoint_is_free:
                return Report("failed", "processes of an earlier driver do not end, even by -9")
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
            driver = Driver(wanted, self._site, self._command)
        except OSError as error:
            cause = causes.cause_of(None, str(error))
            why = causes.NOT_STARTED if cause == causes.EXIT else cause
            return self._retry_later(self._death(None, why, f"cannot be started: {error}"), now)
        checkpoint = checkpoint_of(wanted, self._site).name
        self._life = _Life(driver, now, Progress(self._patience, now, checkpoint))
        again = f" again, attempt {self._backoff.deaths + 1}" if self._backoff.deaths else ""
        return Report("starting", f"Spark starts{again}")

    def _begin_to_end(self, life: _Life, wanted: DriverSpec | None, now: float) -> Report:
        life.driver.ask_to_end()
        life.ending_since = now
        return replace(self._last, detail="ending" if wanted is None else "ending, to start anew")

    def _while_ending(self, driver: Driver, waited: float, now: float) -> Report:
        if driver.exit_code() is None and waited < self._patience.ending:
            return self._last
        if not driver.kill():
            return Report("degraded", "processes of the driver do not end, even by -9")
        self._life = None
        self._due_at = now
        return Report("stopped")

    def _after_death(self, life: _Life, wanted: DriverSpec | None, now: float) -> Report:
        code = life.driver.exit_code()
        if not life.driver.kill():
            return Report("failed", "processes of a dead driver do not end, even by -9")
        self._life = None
        if wanted is None:
            return Report("stopped")
        error = life.driver.last_error()
        cause, answer = causes.cause_of(code, error), causes.described(code, error)
        if cause == causes.EXIT and (known := self._surroundings(life)):
            cause, answer = known[0], f"{known[1]} ({answer})"
        return self._retry_later(self._death(life, cause, answer, code, now), now)

    def _surroundings(self, life: _Life) -> tuple[str, str] | None:
        """Return the cause that Redis or a disk is: a full disk may cut off the driver's log."""
        checkpoint = checkpoint_of(life.driver.spec, self._site)
        full = [item for item in (checkpoint.parent, self._site.data) if is_full(item)]
        if full:
            return causes.DISK, f"the disk of {full[0]} is full"
        try:
            seen = self._look(self.cluster, life.driver.spec.log_url)
        except Unknown:
            return None
        if not seen.problem:
            return None
        return seen.problem, f"Redis takes no writes: {seen.problem_text}"

    def _watch(self, life: _Life, now: float) -> Report:
        try:
            result = self._look(self.cluster, life.driver.spec.log_url)
        except Unknown:
            # Whether it lives cannot be known: that is no reason to kill it.
            life.progress.excuse(now)
            return Report("degraded", "Redis does not answer", "redis-away")
        # The hash of a dead driver stays for half a minute: it says nothing of this one.
        own = result.beat is not None and result.beat.pid == life.driver.pid
        life.progress.note(result if own else replace(result, beat=None), now)
        if result.problem:
            life.progress.excuse(now)
            life.healthy_since = None
            return Report(
                "degraded", f"Redis takes no writes: {result.problem_text}", result.problem
            )
        wrong = life.progress.wrong(now)
        if wrong is not None and wrong.fatal:
            return self._kill(life, wrong, now)
        return self._judge(life, result, wrong, now)

    def _judge(self, life: _Life, seen: Seen, wrong: Wrong | None, now: float) -> Report:
        beat = life.progress.beat
        if beat is None or (not life.progress.runs and wrong is None):
            return Report("starting", self._last.detail)
        if wrong is not None:
            life.healthy_since = None
            hung = wrong.cause in {causes.NO_PROGRESS, causes.JVM_SILENT}
            return Report("stuck" if hung else "degraded", wrong.text, wrong.cause)
        if beat.state not in {"running", "starting"}:
            return Report("degraded", beat.error or f"the driver reports: {beat.state}")
        self._note_health(life, seen, now)
        return behind(life.progress) or Report("running", beat.note)

    def _note_health(self, life: _Life, seen: Seen, now: float) -> None:
        if life.healthy_since is None:
            life.healthy_since = now
        healthy = now - life.healthy_since >= HEALTHY_S
        if healthy:
            self._backoff.reset()
        if self._loop is not None:
            index = self._loop.batch
            over = healthy if index is None else seen.batch >= index
            self._loop = None if over else self._loop

    def _kill(self, life: _Life, wrong: Wrong, now: float) -> Report:
        if not life.driver.kill():
            return Report("failed", "a silent driver does not end, even by -9")
        self._life = None
        death = self._death(life, wrong.cause, f"{wrong.text}: killed", None, now)
        return self._retry_later(death, now)

    def _death(
        self, life: _Life | None, cause: str, detail: str, code: int | None = None, now: float = 0.0
    ) -> Death:
        log_url = life.driver.spec.log_url if life else ""
        try:
            seen = self._look(self.cluster, log_url)
        except Unknown:
            # What it was doing when it was last heard of.
            seen = life.progress.seen or Seen() if life else Seen()
        batch = seen.batch + 1 if seen.batch >= 0 else None
        uptime_s = now - life.begun_at if life else 0.0
        return Death(time.time(), cause, detail, code, batch, seen.unread, uptime_s)

    def _retry_later(self, death: Death, now: float) -> Report:
        self._deaths = [*self._deaths, death][-KEPT:]
        self._died(death)
        self._loop = loop_of(self._deaths, death.at_s)
        delay = self._backoff.next_delay()
        self._due_at = now + delay
        why = f"{death.detail} (restart {self._backoff.deaths} in {delay:.0f} s)"
        return Report("failed", why, death.cause)
