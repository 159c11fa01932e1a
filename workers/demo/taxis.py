"""The demonstration `sf`: a day of taxis; each map tile is a stream, each trip a query."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from workers.demo.long_lived import draw_long_lived
from workers.demo.program import Wanted
from workers.demo.recording import Recording, load_recording
from workers.demo.timeline import reports_between, trips_at

# One trip in so many is a query, and none over many tiles: a plan must hold for ten minutes, in
# which all trips are replaced, and a node with a trip over many tiles receives all of these.
TRIPS_PER_QUERY: Final = 30
MOST_TILES: Final = 5


class Taxis:
    """The recorded day, replayed `speed` times as fast, with so many long-lived queries."""

    slug = "sf"
    prefixes: Sequence[str] = ("trip-", "mouse-")
    late_nodes: Sequence[int] = (2, 3)

    def __init__(self, speed: float, long_lived: int, recording: Recording | None = None) -> None:
        """Replay a recording, that of the package by default."""
        self._recording = recording or load_recording()
        self._speed = speed
        names = [tile.name for tile in self._recording.tiles]
        self._long_lived = draw_long_lived(long_lived, names)

    def declarations(self) -> list[dict[str, Any]]:
        """Return one stream per map tile."""
        return [tile.declaration(self._speed) for tile in self._recording.tiles]

    def records_between(self, after: int, until: int) -> dict[str, pa.RecordBatch]:
        """Return the reports of the moments (after, until] by tile."""
        result = reports_between(self._recording, after, until)
        return {self._recording.tiles[tile].name: batch for tile, batch in result.items()}

    def queries_at(self, moment: int) -> Sequence[Wanted]:
        """Return the long-lived queries, and those of the trips that are in progress."""
        trips = trips_at(self._recording, moment, TRIPS_PER_QUERY, MOST_TILES)
        return [*self._long_lived, *trips]
