"""Brings one cluster's driver to what is wanted, one step at a time, never blocking for long."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

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
        self._driver: Driver | None = None
        self._ending_since: float | None = None
        self._due_at = 0.0
        self._started_at = 0.0
        self._beat_ms = 0
        self._beat_at = 0.0
        self._healthy_since: float | None = None
        self._free = False
        self._last = Report("stopped")

    @property
    def pid(self) -> int | None:
        """The driver's process id, while there is one."""
        return self._driver.pid if self._driver else None

    def step(self, wanted: DriverSpec | None, now: float) -> Report:
        """Bring the driver closer to `wanted` (None: no driver) and return how it stands."""
        if self._driver is None:
            self._last = self._without_driver(wanted, now)
        elif self._ending_since is not None:
            self._last = self._while_ending(self._driver, self._ending_since, now)
        elif self._driver.exit_code() is not None:
            self._last = self._after_death(self._driver, wanted, now)
        elif wanted != self._driver.spec:
            self._last = self._begin_to_end(self._driver, wanted, now)
        else:
            self._last = self._watch(self._driver, now)
        return self._last

    def has_ended(self) -> bool:
        """Return whether there is no driver."""
        return self._driver is None

    def kill(self) -> None:
        """End the driver at once."""
        if self._driver is not None and self._driver.kill():
            self._driver = None

    def _without_driver(self, wanted: DriverSpec | None, now: float) -> Report:
        if not self._free:
            self._free = end_strays(self._site, self.cluster)
            if not self._free:
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
            self._driver = Driver(wanted, self._site, self._command)
        except OSError as error:
            return self._retry_later(f"cannot be started: {error}", now)
        self._ending_since = self._healthy_since = None
        self._started_at = self._beat_at = now
        self._beat_ms = 0
        again = f" again, attempt {self._backoff.deaths + 1}" if self._backoff.deaths else ""
        return Report("starting", f"Spark starts{again}")

    def _begin_to_end(self, driver: Driver, wanted: DriverSpec | None, now: float) -> Report:
        driver.ask_to_end()
        self._ending_since = now
        return replace(self._last, detail="ending" if wanted is None else "ending, to start anew")

    def _while_ending(self, driver: Driver, since: float, now: float) -> Report:
        if not driver.has_ended():
            first_is_gone = driver.exit_code() is not None
            if now - since < self._patience.ending and not first_is_gone:
                return self._last
            if not driver.kill():
                return Report("degraded", "processes of the driver do not end, even by -9")
        self._driver = self._ending_since = None
        self._due_at = now
        return Report("stopped")

    def _after_death(self, driver: Driver, wanted: DriverSpec | None, now: float) -> Report:
        error = self._own_error(driver) or driver.last_error()
        if not driver.kill():
            return Report("failed", "processes of a dead driver do not end, even by -9")
        self._driver = None
        if wanted is None:
            return Report("stopped")
        return self._retry_later(error or f"ended with code {driver.exit_code()}", now)

    def _retry_later(self, why: str, now: float) -> Report:
        delay = self._backoff.next_delay()
        self._due_at = now + delay
        return Report("failed", f"{why} (restart {self._backoff.deaths} in {delay:.0f} s)")

    def _watch(self, driver: Driver, now: float) -> Report:
        try:
            beat = self._heartbeat(self.cluster)
        except Unknown:
            # Whether it beats cannot be known: that is no reason to kill it.
            self._beat_at = now
            return Report("degraded", "Redis does not answer")
        if beat is not None and beat.pid == driver.pid and beat.beat_ms != self._beat_ms:
            self._beat_ms, self._beat_at = beat.beat_ms, now
        silent = now - self._beat_at
        limit = self._patience.dead if self._beat_ms else self._patience.first_beat
        if silent > limit:
            return self._kill_silent(driver, silent, now)
        return self._judge(beat if self._beat_ms else None, silent, now)

    def _judge(self, beat: Heartbeat | None, silent: float, now: float) -> Report:
        if beat is None and not self._beat_ms:
            return Report("starting", self._last.detail)
        if silent > self._patience.late or beat is None:
            self._healthy_since = None
            return Report("degraded", f"no heartbeat for {silent:.0f} s")
        if beat.state == "starting":
            return Report("starting", self._last.detail)
        if beat.state != "running":
            return Report("degraded", beat.error or f"the driver says: {beat.state}")
        self._note_health(now)
        return Report("running")

    def _note_health(self, now: float) -> None:
        if self._healthy_since is None:
            self._healthy_since = now
        elif now - self._healthy_since >= HEALTHY_S:
            self._backoff.reset()

    def _kill_silent(self, driver: Driver, silent: float, now: float) -> Report:
        if not driver.kill():
            return Report("failed", "a silent driver does not end, even by -9")
        self._driver = None
        return self._retry_later(f"no heartbeat for {silent:.0f} s: killed", now)

    def _own_error(self, driver: Driver) -> str:
        try:
            beat = self._heartbeat(self.cluster)
        except Unknown:
            return ""
        return beat.error if beat is not None and beat.pid == driver.pid else ""
