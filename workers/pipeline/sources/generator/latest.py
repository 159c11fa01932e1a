"""How many events of a generator have occurred: nobody is asked, as the clock determines it."""

import time
from collections.abc import Mapping
from typing import Final

from controlplane.wire.sources.generator import EventKind, GeneratorSource
from workers.pipeline.sources.generator.nexmark import count_of
from workers.pipeline.sources.generator.rates import RateShape
from workers.pipeline.sources.plan import SourceState


def ends_at(source: GeneratorSource, clock_ms: int) -> dict[int, tuple[int, int]]:
    """Return the first offset and the end of each partition at a time; events go round."""
    shape = RateShape(source.rate, source.period_s)
    events = shape.count_at((clock_ms - source.start_ms) / 1000)
    if source.total:
        events = min(events, source.total)
    count, partitions = count_of(EventKind(source.event), events), source.partitions
    return {n: (0, (count - n + partitions - 1) // partitions) for n in range(partitions)}


class GeneratorWatcher:
    """Knows how far a generator reaches."""

    def __init__(
        self, source: GeneratorSource, cluster: str, stream: int, topics: tuple[str, ...] = ()
    ) -> None:
        del cluster, stream, topics
        self._source = source

    def state(self) -> SourceState:
        """Return the ends by the present time."""
        ends = ends_at(self._source, time.time_ns() // 1_000_000)
        return SourceState(ends, dict.fromkeys(ends, 0))

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Do nothing: events are never gone."""

    def close(self) -> None:
        """Do nothing: there is no thread."""


WATCHER: Final = GeneratorWatcher
