"""The process from which an agent's drivers and spares, and their Python processes, are forked."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from controlplane.child_processes.preload import Preloaded, Process
from controlplane.child_processes.socket_folders import own_directory
from controlplane.child_processes.start import spawn
from controlplane.child_processes.trees import adopt_orphans

# Not imported here: the agent does not need it.
MODULE: Final = "workers.pipeline.spark.loaded"

logger = logging.getLogger(__name__)


class Loaded:
    """Starts it before the first driver; its own variables have no secret of a driver."""

    def __init__(self, env: Mapping[str, str], log: Path) -> None:
        """Make this process the parent of forks, and of orphans of drivers."""
        adopt_orphans()
        self._env = env
        self._log = log
        self._preloaded: Preloaded | None = None

    def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        inherited: Sequence[int] = (),
    ) -> Process:
        """Start a driver or a spare as `spawn` does. Raises `OSError`."""
        self.revive()
        if self._preloaded is None:
            return spawn(command, env, log, inherited)
        variables = {**env, "WEIR_FORK_SERVER": self._preloaded.path}
        return self._preloaded.start(command, variables, log, inherited)

    def revive(self) -> None:
        """Start the process if it has not been started, or has ended."""
        try:
            if self._preloaded is not None:
                self._preloaded.revive()
            elif folder := own_directory():
                self._preloaded = Preloaded(MODULE, self._env, self._log, folder)
        except OSError as error:
            logger.warning("drivers start without a loaded process: %s", error)

    def reap_orphans(self) -> None:
        """Collect what drivers have left when it ends."""
        if self._preloaded is not None:
            self._preloaded.reap_orphans()
