"""The demonstration `web`: each directory of the server is a stream, its queries stay."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from workers.demo.program import Wanted
from workers.demo.web.queries import PREFIX, long_lived
from workers.demo.web.recording import load_recording
from workers.demo.web.timeline import requests_between


class Web:
    """The recorded hours, replayed `speed` times as fast."""

    slug = "web"
    prefixes: Sequence[str] = (PREFIX,)
    late_nodes: Sequence[int] = ()

    def __init__(self, speed: float) -> None:
        self._recording = load_recording()
        self._speed = speed
        self._queries = long_lived(self._recording.directories)

    def declarations(self) -> list[dict[str, Any]]:
        """Return one stream per directory."""
        return [directory.declaration(self._speed) for directory in self._recording.directories]

    def records_between(self, after: int, until: int) -> dict[str, pa.RecordBatch]:
        """Return the requests of the moments (after, until] by directory."""
        return requests_between(self._recording, after, until)

    def queries_at(self, moment: int) -> Sequence[Wanted]:
        """Return the queries, which are the same at all times."""
        return self._queries
