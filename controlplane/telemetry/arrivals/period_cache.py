"""The arrivals of complete periods, kept by each process: they do not change any more.

A page reads hundreds of periods, each with all streams of its cluster; six of them are new in a
minute.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import Final

from django.db.models import QuerySet

from controlplane.models import Cluster, SeriesPeriod
from controlplane.telemetry.grid import Period
from controlplane.telemetry.series import periods_of

# Numbers that are kept in all: 64 MB.
MOST_VALUES: Final = 8_000_000
ARRIVED: Final = "stream_arrived"

Key = tuple[int, datetime, int, datetime, float]


class PeriodCache:
    """The arrivals of periods by cluster, length and start; the oldest uses go first.

    A period is read again when more of it is measured.
    """

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self._kept: OrderedDict[Key, Period] = OrderedDict()
        self._values = 0
        self._lock = Lock()

    def read(self, cluster: Cluster, rows: QuerySet[SeriesPeriod]) -> list[Period]:
        """Return the periods of rows of a cluster, with their arrivals, in order of time."""
        # A new database reuses ids.
        own = cluster.pk, cluster.created_at
        keys: dict[int, Key] = {
            pk: (*own, seconds, t, measured_s)
            for pk, seconds, t, measured_s in rows.order_by("t").values_list(
                "pk", "seconds", "t", "measured_s"
            )
        }
        kept = self._known(list(keys.values()))
        missing = [pk for pk, key in keys.items() if key not in kept]
        if missing:
            kept |= self._load(own, rows.filter(pk__in=missing))
        # A row that was deleted meanwhile is left out.
        return [kept[key] for key in keys.values() if key in kept]

    def clear(self) -> None:
        """Forget all periods, as after rows of another database with the same ids."""
        with self._lock:
            self._kept.clear()
            self._values = 0

    def _known(self, keys: Sequence[Key]) -> dict[Key, Period]:
        with self._lock:
            kept = {key: self._kept[key] for key in keys if key in self._kept}
            for key in kept:
                self._kept.move_to_end(key)
        return kept

    def _load(self, own: tuple[int, datetime], rows: QuerySet[SeriesPeriod]) -> dict[Key, Period]:
        with self._lock:
            newest = next(reversed(self._kept.values()), None)
        subjects = None if newest is None else newest.subjects
        loaded: dict[Key, Period] = {}
        for _, period in periods_of(rows):
            # Most periods have the same streams, which are kept once.
            if subjects is None or period.subjects.tobytes() != subjects.tobytes():
                subjects = period.subjects.copy()
            values = {ARRIVED: period.values[ARRIVED].copy()}
            key = (*own, period.seconds, period.t, period.measured_s)
            loaded[key] = replace(period, subjects=subjects, values=values)
        with self._lock:
            for key, period in loaded.items():
                if key not in self._kept:
                    self._kept[key] = period
                    self._values += len(period.subjects)
            while self._values > self._most:
                self._values -= len(self._kept.popitem(last=False)[1].subjects)
        return loaded
