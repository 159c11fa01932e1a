"""When the agent has a spare for the next driver that dies."""

import logging
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import psutil

from controlplane.child_processes.trees import kill_with_environment
from controlplane.processes.runtime.beats import IDLE
from workers.agent.driver import DriverSpec, Site, environment, kill_marked
from workers.agent.spare import COMMAND, Spare

logger = logging.getLogger("weir.agent")

# All processes of spares of this data directory, and of drivers that were spares.
_OWNER: Final = "WEIR_SPARES"
# A start takes processor time from running clusters, and those that start need it more.
CALM_S: Final = 20.0
# After a spare that could not start.
_RETRY_S: Final = 600.0
# What a machine has without the spare; it ends where less is left than a driver takes.
_ENOUGH_BYTES: Final = 3 << 30
_LEAST_BYTES: Final = 1 << 30


class Spares:
    """The spare of an agent, which is the next driver; there is at most one.

    `kept`: whether there is any; `command`: its command line.
    """

    def __init__(self, site: Site, *, kept: bool = True, command: Sequence[str] = COMMAND) -> None:
        """End the processes of an earlier agent's spares, also those that became drivers."""
        self._site = site
        self._kept = kept
        self._command = command
        self._numbers = count()
        self._spare: Spare | None = None
        self._calm_since: float | None = None
        self._due_at = float("-inf")
        kill_with_environment(_OWNER, str(site.data))

    def take(self, spec: DriverSpec) -> Spare | None:
        """Return the spare if it is ready to be a driver with these settings, and forget it."""
        spare = self._spare
        if spare is None or not spec.master.startswith("local") or not spare.is_ready():
            return None
        self._spare, self._calm_since = None, None
        return spare

    def step(self, clusters: Mapping[str, str], now: float) -> None:
        """Start a spare where all clusters have run for a while, or end what is of no use.

        `clusters`: states, also of clusters that other agents run and this one may take over.
        """
        states = {"running" if state == IDLE else state for state in clusters.values()}
        states.discard("stopped")
        if states != {"running"}:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = now
        free = psutil.virtual_memory().available
        if self._spare is not None:
            if self._spare.process.poll() is not None:
                logger.warning("the spare driver has ended: its log is %s", self._log)
                self.end()
                self._due_at = now + _RETRY_S
            elif not states or free < _LEAST_BYTES:
                self.end()
        elif self._is_wanted(now) and free >= _ENOUGH_BYTES:
            self._start(now)

    def end(self) -> None:
        """Kill the spare."""
        spare, self._spare = self._spare, None
        if spare is not None:
            kill_marked(spare.mark, spare.process)

    def _is_wanted(self, now: float) -> bool:
        calm = self._calm_since is not None and now - self._calm_since >= CALM_S
        return self._kept and calm and now >= self._due_at

    def _start(self, now: float) -> None:
        mark = f"{self._site.data}/spare-{next(self._numbers)}"
        variables = environment(self._site, mark, is_local=True)
        variables |= {_OWNER: str(self._site.data), "WEIR_SPARK_CONF": self._site.spark_conf}
        try:
            self._spare = Spare(variables, mark, self._log, self._command, self._site.launch)
        except OSError as error:
            logger.warning("the spare driver cannot be started: %s", error)
            self._due_at = now + _RETRY_S

    @property
    def _log(self) -> Path:
        return self._site.data / "logs" / "spare.log"
