"""The arrivals of complete periods, kept by each process: they do not change any more.

A page reads hundreds of periods, each with all streams of its cluster; six of them are new in a
minute.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final

from django.db.models import QuerySet

from algorithms.vocabulary import Floats
from controlplane.models import Cluster, StreamArrivals

# Numbers that are kept in all: 64 MB.
MOST_VALUES: Final = 8_000_000

Key = tuple[int, datetime, int, datetime, datetime]
Columns = tuple[Floats, Floats]


class PeriodCache:
    """The streams and arrivals of periods by cluster, length and start; the oldest uses go first.

    A period is read again when it is counted further.
    """

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self._kept: OrderedDict[Key, Columns] = OrderedDict()
        self._values = 0
        self._lock = Lock()

    def read(
        self, cluster: Cluster, seconds: int, rows: QuerySet[StreamArrivals]
    ) -> Iterator[tuple[datetime, Columns]]:
        """Yield the start of each complete period with its streams, ascending, and arrivals."""
        length = timedelta(seconds=seconds)
        every = rows.values_list("pk", "t", "counted_until")
        stored = [row for row in every if row[2] >= row[1] + length]
        # A new database reuses ids.
        keys = [(cluster.pk, cluster.created_at, seconds, t, until) for _, t, until in stored]
        kept = self._known(keys)
        missing = [row[0] for row, key in zip(stored, keys, strict=True) if key not in kept]
        if missing:
            newest = next(reversed(kept.values()), None)
            streams = newest[0] if newest is not None else None
            kept |= self._load(cluster, seconds, rows.filter(pk__in=missing), streams)
        for key in keys:
            # A row that was deleted meanwhile is left out.
            if key in kept:
                yield key[3], kept[key]

    def clear(self) -> None:
        """Forget all periods, as after rows of another database with the same ids."""
        with self._lock:
            self._kept.clear()
            self._values = 0

    def _known(self, keys: Sequence[Key]) -> dict[Key, Columns]:
        with self._lock:
            kept = {key: self._kept[key] for key in keys if key in self._kept}
            for key in kept:
                self._kept.move_to_end(key)
        return kept

    def _load(
        self, cluster: Cluster, seconds: int, rows: Any, streams: Floats | None
    ) -> dict[Key, Columns]:
        """Return the periods of rows; `streams`: those of a kept period, None without one."""
        loaded: dict[Key, Columns] = {}
        for row in rows:
            own, arrived = row.arrivals()
            # Most periods have the same streams, which are kept once.
            if streams is None or own.tobytes() != streams.tobytes():
                streams = own.copy()
            key = cluster.pk, cluster.created_at, seconds, row.t, row.counted_until
            loaded[key] = streams, arrived.copy()
        with self._lock:
            for key, columns in loaded.items():
                if key not in self._kept:
                    self._kept[key] = columns
                    self._values += len(columns[1])
            while self._values > self._most:
                self._values -= len(self._kept.popitem(last=False)[1][1])
        return loaded
