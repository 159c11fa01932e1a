"""The agent's loop: read desired drivers, step each cluster it holds, publish reports, beat."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

import redis

from controlplane.processes.runtime.beats import IDLE, beat, record_clusters
from controlplane.processes.runtime.leases import Leases
from workers.agent.driver import DriverSpec
from workers.agent.keeper import Keeper
from workers.agent.progress import Progress, Report
from workers.agent.removal import Removal

logger = logging.getLogger("weir.agent")

Wanted = Mapping[str, DriverSpec | None]
# Stores reports, and the progress of running drivers, by cluster.
Write = Callable[[Mapping[str, Report], Mapping[str, Progress]], None]
# Returns why a driver must not run, None if it may; the last argument: whether it runs.
Hold = Callable[[DriverSpec, float, bool], Report | None]
# Prepares the users of drivers; its argument: all clusters.
Prepare = Callable[[Collection[str]], None]
# The interval of reports that differ in their numbers only (s).
_NUMBERS_EVERY_S: Final = 5.0
# The interval of looks at leases beside the loop, which databases and processes may delay (s).
_WATCH_S: Final = 0.25
_BAD: Final = frozenset({"failed", "stuck", "crash loop", "needs decision"})


class Agent:
    """The keepers of the clusters that this agent holds; its arguments access database and Redis.

    Each cluster has a lease; another agent has its driver if this one cannot renew it.
    """

    def __init__(
        self,
        client: "redis.Redis",
        leases: Leases,
        wanted: Callable[[], Wanted],
        write: Write,
        keeper: Callable[[str], Keeper],
        hold: Hold | None = None,
        removal: Removal | None = None,
        prepare: Prepare = lambda _: None,
    ) -> None:
        self._client = client
        self._leases = leases
        self._wanted = wanted
        self._write = write
        self._make_keeper = keeper
        self._hold = hold
        self._removal = removal
        self._prepare = prepare
        self._keepers: dict[str, Keeper] = {}
        self._published: dict[str, tuple[float, Report]] = {}

    def tick(self, now: float) -> dict[str, str]:
        """Step every cluster that this agent holds; return the states of those of all agents."""
        wanted = self._wanted()
        deleted = set(self._removal.read_deleted()) if self._removal else set[str]()
        self._leases.step(wanted.keys() | deleted, self._idle(wanted))
        self._prepare(wanted.keys() | deleted)
        # The preparation may have outlasted leases.
        held = self._leases.held()
        self._kill_lost(held)
        for slug in wanted.keys() & held.keys() - self._keepers.keys():
            self._keepers[slug] = self._make_keeper(slug)
        reports = self._take_steps(wanted, now)
        for slug in [s for s, k in self._keepers.items() if s not in wanted and k.has_ended()]:
            del self._keepers[slug]
        # Another agent reports what this one has lost since.
        own = wanted.keys() & self._leases.held().keys()
        self._publish({slug: report for slug, report in reports.items() if slug in own})
        if self._removal is not None:
            self._removal.step(deleted & held.keys() - self._keepers.keys(), now)
        return self._beat({slug: self._recorded(slug, r) for slug, r in reports.items()}, wanted)

    def _recorded(self, slug: str, report: Report) -> str:
        """Return the state of a cluster, `IDLE` if it runs and no record waits for a batch."""
        keeper = self._keepers.get(slug)
        seen = keeper.progress.observed if keeper and keeper.progress else None
        is_idle = report.state == "running" and seen is not None and seen.unread == 0
        return IDLE if is_idle else report.state

    def watch(self, stop: threading.Event) -> None:
        """Renew the leases and kill drivers without one until `stop`, whatever delays the loop."""
        killers = dict[str, threading.Thread]()
        while not stop.wait(_WATCH_S):
            try:
                self._leases.renew()
                lost = self._keepers.keys() - self._leases.held().keys()
                # After a stop of this process the loop may be renewing them.
                if lost and not stop.wait(_WATCH_S):
                    self._start_killers(lost - self._leases.held().keys(), killers)
            except Exception:
                logger.exception("the leases could not be watched")

    def _start_killers(self, lost: Collection[str], killers: dict[str, threading.Thread]) -> None:
        """Kill drivers at the same time: each may take longer than the margin of a lease.

        `killers`: the threads that may still be doing so, by cluster.
        """
        for slug in lost:
            keeper, killer = self._keepers.get(slug), killers.get(slug)
            if keeper and not keeper.has_ended() and not (killer and killer.is_alive()):
                killers[slug] = threading.Thread(target=keeper.kill, name=slug, daemon=True)
                killers[slug].start()

    def _idle(self, wanted: Wanted) -> list[str]:
        """Return the stopped clusters, which another agent can have without an interruption."""
        stopped = (slug for slug, spec in wanted.items() if spec is None)
        return [s for s in stopped if s in self._keepers and self._keepers[s].has_ended()]

    def _kill_lost(self, held: Collection[str]) -> None:
        for slug in self._keepers.keys() - set(held):
            self._keepers[slug].kill()
            if self._keepers[slug].has_ended():
                del self._keepers[slug]

    def end(self, patience_s: float, pause: Callable[[float], None] = time.sleep) -> None:
        """Stop every driver, and kill it after `patience_s`."""
        deadline = time.monotonic() + patience_s
        nothing: Wanted = dict.fromkeys(self._keepers)
        while self._take_steps(nothing, time.monotonic()) and not all(
            keeper.has_ended() for keeper in self._keepers.values()
        ):
            if time.monotonic() > deadline:
                break
            pause(0.1)
        for keeper in self._keepers.values():
            keeper.kill()
        ended = Report("stopped", "the agent has ended")
        try:
            self._publish(dict.fromkeys(self._keepers, ended))
        finally:
            self._leases.leave()

    def _take_steps(self, wanted: Wanted, now: float) -> dict[str, Report]:
        """Take the steps of all clusters; those that lost their leases meanwhile take none."""
        reports = {
            slug: self._take_step(keeper, wanted.get(slug), now)
            for slug, keeper in self._keepers.items()
        }
        return {slug: report for slug, report in reports.items() if report is not None}

    def _take_step(self, keeper: Keeper, spec: DriverSpec | None, now: float) -> Report | None:
        held = None
        try:
            if spec is not None and self._hold is not None and not keeper.waits(now):
                held = self._hold(spec, now, not keeper.has_ended())
            if spec is not None and keeper.cluster not in self._leases.held():
                return None
            report = keeper.step(spec if held is None else None, now)
        except Exception as error:
            # The next step retries; the other clusters continue.
            logger.exception("%s: the step failed", keeper.cluster)
            return Report("degraded", f"The agent's step failed: {error}"[:300], "agent")
        return held or report

    def _publish(self, reports: Mapping[str, Report]) -> None:
        now = time.monotonic()
        for slug, report in reports.items():
            before = self._published.get(slug)
            if before is None or report.kind != before[1].kind:
                level = logging.ERROR if report.state in _BAD else logging.INFO
                logger.log(level, "%s is %s %s", slug, report.state, report.detail)
        due = {slug: report for slug, report in reports.items() if self._is_due(slug, report, now)}
        kept = {slug: self._keepers[slug].progress for slug in due if slug in self._keepers}
        self._write(due, {slug: item for slug, item in kept.items() if item is not None})
        self._published = {
            slug: (now, report) if slug in due else self._published[slug]
            for slug, report in reports.items()
        }

    def _is_due(self, slug: str, report: Report, now: float) -> bool:
        written_at, before = self._published.get(slug, (float("-inf"), None))
        if before is None or report.kind != before.kind:
            return True
        # Corrects states that others have written.
        return now - written_at >= _NUMBERS_EVERY_S

    def _beat(self, states: Mapping[str, str], wanted: Wanted) -> dict[str, str]:
        try:
            # Nobody who waits for the beat reads the states of an earlier run.
            recorded = record_clusters(self._client, states, wanted.keys())
            beat(self._client, "agent", self._leases.holder)
            return recorded
        except redis.RedisError as error:
            logger.warning("Redis rejects the agent's beat: %s", error)
            return dict(states)
