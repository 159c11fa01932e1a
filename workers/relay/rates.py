"""Counts of records per stream between updates of the measured rates."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

# Seconds between updates: a thousand streams are a thousand row updates.
EVERY_S = 5.0


class RateMeter:
    """The records of a cluster's streams since the last update, by the data plane's clock."""

    def __init__(self) -> None:
        self._records: Counter[int] = Counter()
        self._since_ms: int | None = None

    def add(self, rows: Iterable[Mapping[str, Any]]) -> tuple[dict[int, int], float] | None:
        """Count telemetry rows; return records per stream and seconds when an update is due."""
        until_ms = self._since_ms
        for row in rows:
            until_ms = int(row["emitted_ms"])
            if self._since_ms is None:
                # The first batch only starts the clock.
                self._since_ms = until_ms
                continue
            self._records.update({int(stream): n for stream, n in row["streams"].items()})
        if self._since_ms is None or until_ms is None:
            return None
        seconds = (until_ms - self._since_ms) / 1000
        if seconds < EVERY_S:
            return None
        due = dict(self._records)
        self._records.clear()
        self._since_ms = until_ms
        return due, seconds
