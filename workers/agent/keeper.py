"""Brings one cluster's driver to what is wanted, one step at a time, never blocking for long."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from workers.agent.backoff import HEALTHY_S, BackOff
from workers.agent.driver import CommandFactory, Driver, DriverSpec, Site, end_strays
from workers.agent.heartbeats import Heartbeat, Unknown

State = Literal["starting", "running", "degraded", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds, before something is wrong.

    first_beat: Spark starts in 5 to 40 s; late: shown as degraded; dead: killed and restarted;
    ending: from the request to end until -9.
    """

    first_beat: float = 180.0
    late: float = 15.0
    dead: float = 60.0
    ending: float = 15.0


@dataclass(frozen=True, slots=True)
class Report:
    """What the database is told of a cluster."""

    state: State
    detail: str = ""


ReadHeartbeat = Callable[[str], Heartbeat | None]


@dataclass(slots=True)
class _Life:
    """One driver from start to end; times are those of the monotonic clock."""

    driver: Driver
    beat_at: float
    beat_ms: int = 0
    healthy_since: float | None = None
    ending_since: float | None = None

    def note(self, beat: Heartbeat | None, now: float) -> None:
        if beat is not None and beat.beat_ms != self.beat_ms:
            self.beat_ms, self.beat_at = beat.beat_ms, now


class Keeper:
    """The driver of one cluster; `step` is called about once a second with a monotonic clock."""

    def __init__(
        self,
        cluster: str,
        site: Site,
        command: CommandFactory,
        heartbeat: ReadHeartbeat,
        *,
        patience: Patience | None = None,
        backoff: BackOff | None = None,
    ) -> None:
        self.cluster = cluster
        self._site = site
        self._command = command
        self._heartbeat = heartbeat
        self._patience = patience or Patience()
        self._backoff = backoff or BackOff()
        self._life: _Life | None = None
        self._due_at = 0.0
        self._checkpoint_is_free = False
        self._last = Report("stopped")

    @property
    def pid(self) -> int | None:
        """The driver's process id, while there is one."""
        return self._life.driver.pid if self._life else None

    def step(self, wanted: DriverSpec | None, now: float) -> Report:
        """Bring the driver closer to `wanted` (None: no driver) and return how it stands."""
        self._last = self._next(self._life, wanted, now)
        return self._last

    def has_ended(self) -> bool:
        """Return whether there is no driver."""
        return self._life is None

    def kill(self) -> None:
        """End the driver at once."""
        if self._life is not None and self._life.driver.kill():
            self._life = None

    def _next(self, life: _Life | None, wanted: DriverSpec | None, now: float) -> Report:
        if life is None:
            return self._without_driver(wanted, now)
        if life.ending_since is not None:
            return self._while_ending(life.driver, now - life.ending_since, now)
        if life.driver.exit_code() is not None:
            return self._after_death(life.driver, wanted, now)
        if wanted != life.driver.spec:
            return self._begin_to_end(life, wanted, now)
        return self._watch(life, now)

    def _without_driver(self, wanted: DriverSpec | None, now: float) -> Report:
        if not self._checkpoint_is_free:
            self._checkpoint_is_free = end_strays(self._site, self.cluster)
            if not self._checkpoint_is_free:
                return Report("failed", "processes of an earlier driver do not end, even by -9")
        if wanted is None:
            self._backoff.reset()
            self._due_at = now
            return Report("stopped")
        if now < self._due_at:
            return self._last
        return self._start(wanted, now)

    def _start(self, wanted: DriverSpec, now: float) -> Report:
        try:
            driver = Driver(wanted, self._site, self._command)
        except OSError as error:
            return self._retry_later(f"cannot be started: {error}", now)
        self._life = _Life(driver, beat_at=now)
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

    def _after_death(self, driver: Driver, wanted: DriverSpec | None, now: float) -> Report:
        code = driver.exit_code()
        if not driver.kill():
            return Report("failed", "processes of a dead driver do not end, even by -9")
        self._life = None
        if wanted is None:
            return Report("stopped")
        return self._retry_later(driver.last_error() or f"ended with code {code}", now)

    def _retry_later(self, why: str, now: float) -> Report:
        delay = self._backoff.next_delay()
        self._due_at = now + delay
        return Report("failed", f"{why} (restart {self._backoff.deaths} in {delay:.0f} s)")

    def _watch(self, life: _Life, now: float) -> Report:
        try:
            found = self._heartbeat(self.cluster)
        except Unknown:
            # Whether it beats cannot be known: that is no reason to kill it.
            life.beat_at = now
            return Report("degraded", "Redis does not answer")
        # The hash of a dead driver stays for half a minute: it says nothing of this one.
        beat = found if found is not None and found.pid == life.driver.pid else None
        life.note(beat, now)
        silent = now - life.beat_at
        limit = self._patience.dead if life.beat_ms else self._patience.first_beat
        if silent > limit:
            return self._kill_silent(life.driver, silent, now)
        return self._judge(life, beat, silent, now)

    def _judge(self, life: _Life, beat: Heartbeat | None, silent: float, now: float) -> Report:
        if not life.beat_ms or (beat is not None and beat.state == "starting"):
            return Report("starting", self._last.detail)
        if beat is None or silent > self._patience.late:
            life.healthy_since = None
            return Report("degraded", f"no heartbeat for {silent:.0f} s")
        if beat.state != "running":
            return Report("degraded", beat.error or f"the driver says: {beat.state}")
        self._note_health(life, now)
        return Report("running")

    def _note_health(self, life: _Life, now: float) -> None:
        if life.healthy_since is None:
            life.healthy_since = now
        elif now - life.healthy_since >= HEALTHY_S:
            self._backoff.reset()

    def _kill_silent(self, driver: Driver, silent: float, now: float) -> Report:
        if not driver.kill():
            return Report("failed", "a silent driver does not end, even by -9")
        self._life = None
        return self._retry_later(f"no heartbeat for {silent:.0f} s: killed", now)
