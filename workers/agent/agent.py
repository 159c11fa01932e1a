"""The agent's loop: read desired drivers, step each cluster, publish reports, beat."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

import redis

from controlplane.processes.runtime.beats import beat, record_clusters
from workers.agent.driver import DriverSpec
from workers.agent.keeper import Keeper
from workers.agent.progress import Progress, Report

logger = logging.getLogger("weir.agent")

Wanted = Mapping[str, DriverSpec | None]
# Stores reports, and the progress of running drivers, by cluster.
Write = Callable[[Mapping[str, Report], Mapping[str, Progress]], None]
# Returns why a driver must not run, None if it may; the last argument: whether it runs.
Hold = Callable[[DriverSpec, float, bool], Report | None]
# Removes what deleted clusters have left; its arguments: the clusters with a keeper, the time.
Remove = Callable[[Collection[str], float], None]
# The interval of reports that differ in their numbers only (s).
_NUMBERS_EVERY_S: Final = 5.0
_BAD: Final = frozenset({"failed", "stuck", "crash loop", "needs decision"})


class Agent:
    """The keepers of all clusters; its arguments access database and Redis."""

    def __init__(
        self,
        client: "redis.Redis",
        wanted: Callable[[], Wanted],
        write: Write,
        keeper: Callable[[str], Keeper],
        hold: Hold | None = None,
        remove: Remove | None = None,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._write = write
        self._make_keeper = keeper
        self._hold = hold
        self._remove = remove
        self._keepers: dict[str, Keeper] = {}
        self._published: dict[str, tuple[float, Report]] = {}

    def tick(self, now: float) -> dict[str, Report]:
        """Step every cluster and return the reports."""
        wanted = self._wanted()
        for slug in wanted.keys() - self._keepers.keys():
            self._keepers[slug] = self._make_keeper(slug)
        reports = self._take_steps(wanted, now)
        for slug in [s for s, k in self._keepers.items() if s not in wanted and k.has_ended()]:
            del self._keepers[slug]
        self._publish({slug: report for slug, report in reports.items() if slug in wanted})
        self._beat(reports)
        if self._remove is not None:
            self._remove(self._keepers.keys(), now)
        return reports

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
        self._publish({slug: Report("stopped", "the agent has ended") for slug in self._keepers})

    def _take_steps(self, wanted: Wanted, now: float) -> dict[str, Report]:
        return {
            slug: self._take_step(keeper, wanted.get(slug), now)
            for slug, keeper in self._keepers.items()
        }

    def _take_step(self, keeper: Keeper, spec: DriverSpec | None, now: float) -> Report:
        held = None
        try:
            if spec is not None and self._hold is not None and not keeper.waits(now):
                held = self._hold(spec, now, not keeper.has_ended())
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

    def _beat(self, reports: Mapping[str, Report]) -> None:
        try:
            beat(self._client, "agent")
            record_clusters(self._client, {slug: report.state for slug, report in reports.items()})
        except redis.RedisError as error:
            logger.warning("Redis rejects the agent's beat: %s", error)
