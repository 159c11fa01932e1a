"""How far the partitions of a source reach, which a thread of the driver asks its place."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from threading import Event, Thread
from typing import ClassVar, Final

from controlplane.wire.errors import WireError
from workers.pipeline.sources.plan import SourceState

logger = logging.getLogger("weir.pipeline")

# So long the first batch of a source waits for its place, once.
_FIRST_S: Final = 10.0


class PlaceWatcher(ABC):
    """Follows a place in a thread, so that the planning of a batch never waits for it.

    `failures`: the errors of a place that is away; the thread tries again after `period_s`.
    `topics`: those of the newest cut of the same declaration, which keep their numbers.
    """

    failures: ClassVar[tuple[type[Exception], ...]] = (WireError,)
    period_s: ClassVar[float]

    def __init__(self, name: str, topics: tuple[str, ...] = ()) -> None:
        self._name = name
        self._state = SourceState(topics=topics)
        self._offsets: Mapping[int, int] = {}
        self._ready, self._stopped = Event(), Event()

    def start(self) -> None:
        """Start the thread."""
        Thread(target=self._run, name=self._name, daemon=True).start()

    def state(self) -> SourceState:
        """Return what is known; only the first call waits for the place, up to 10 s."""
        self._ready.wait(_FIRST_S)
        self._ready.set()
        return self._state

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Let the place know soon that the records before these offsets are read."""
        self._offsets = offsets

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()

    def _after(self, error: Exception) -> SourceState:
        """Return what is known after an error."""
        return replace(self._state, error=str(error))

    @abstractmethod
    def _refresh(self) -> None:
        """Ask the place, and keep what it has."""

    @abstractmethod
    def _end(self) -> None:
        """Close what the thread has opened."""

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._refresh()
            except self.failures as error:
                if str(error) != self._state.error:
                    logger.warning("%s: %s", self._name, error)
                self._state = self._after(error)
            self._ready.set()
            self._stopped.wait(self.period_s)
        self._end()
