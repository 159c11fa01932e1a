"""The agent's loop: ask what is wanted, take a step per cluster, tell how they stand, beat."""

import logging
import time
from collections.abc import Callable, Mapping

import redis

from controlplane.runtime.beats import beat, tell_clusters
from workers.agent.driver import DriverSpec
from workers.agent.keeper import Keeper, Report

logger = logging.getLogger("weir.agent")

Wanted = Mapping[str, DriverSpec | None]


class Agent:
    """Keeps a keeper per cluster; database and Redis are reached by what it is given."""

    def __init__(
        self,
        client: "redis.Redis",
        wanted: Callable[[], Wanted],
        write: Callable[[Mapping[str, Report]], None],
        keeper: Callable[[str], Keeper],
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._write = write
        self._make_keeper = keeper
        self._keepers: dict[str, Keeper] = {}
        self._told: dict[str, Report] = {}

    def tick(self, now: float) -> dict[str, Report]:
        """Take one step for every cluster and return how they stand."""
        return self._step(self._wanted(), now)

    def end(self, patience_s: float, pause: Callable[[float], None] = time.sleep) -> None:
        """End every driver: asked first, killed after `patience_s`."""
        deadline = time.monotonic() + patience_s
        nothing: Wanted = dict.fromkeys(self._keepers)
        while self._take_steps(nothing, time.monotonic()) and not self._all_ended():
            if time.monotonic() > deadline:
                break
            pause(0.1)
        for keeper in self._keepers.values():
            keeper.kill()
        self._tell({slug: Report("stopped", "the agent has ended") for slug in self._keepers})

    def _step(self, wanted: Wanted, now: float) -> dict[str, Report]:
        for slug in wanted.keys() - self._keepers.keys():
            self._keepers[slug] = self._make_keeper(slug)
        reports = self._take_steps(wanted, now)
        for slug in [s for s, k in self._keepers.items() if s not in wanted and k.has_ended()]:
            del self._keepers[slug]
        self._tell({slug: report for slug, report in reports.items() if slug in wanted})
        self._beat(reports)
        return reports

    def _take_steps(self, wanted: Wanted, now: float) -> dict[str, Report]:
        return {slug: keeper.step(wanted.get(slug), now) for slug, keeper in self._keepers.items()}

    def _all_ended(self) -> bool:
        return all(keeper.has_ended() for keeper in self._keepers.values())

    def _tell(self, reports: Mapping[str, Report]) -> None:
        for slug, report in reports.items():
            if report != self._told.get(slug):
                level = logging.ERROR if report.state == "failed" else logging.INFO
                logger.log(level, "%s is %s %s", slug, report.state, report.detail)
        self._write(reports)
        self._told = dict(reports)

    def _beat(self, reports: Mapping[str, Report]) -> None:
        try:
            beat(self._client, "agent")
            tell_clusters(self._client, {slug: report.state for slug, report in reports.items()})
        except redis.RedisError as error:
            logger.warning("Redis does not take the agent's beat: %s", error)
