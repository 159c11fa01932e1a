"""The stored series of clusters: written, read, rolled up and deleted in one place.

The values of a period are stored as bytes: two-byte codes of the series, subjects, and their
values. A series has the code of its name, so that declarations may be added, removed and reordered.
Those of thousands of streams are compressed.
"""

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from django.db.models import Max, Q, QuerySet, Subquery

from algorithms.vocabulary import Floats
from controlplane.models import Cluster, SeriesPeriod
from controlplane.telemetry.grid import RAW, Grid, Period, grid_of
from controlplane.wire.figures import KEPT, SAMPLE_SCOPES, SERIES, Scope, figure_of, with_parts

# A chart of about 1200 pixels shows no more points than this.
MAX_ROWS: Final = 900
# A period is complete when a later one is measured, or after this while nothing comes.
PATIENCE: Final = timedelta(seconds=60)
# Micro-batches follow the newest roll-up, which may be so many seconds older than its length.
_LATEST_S: Final = 120
# The first of these scopes has periods if the others have.
_GROUPS: Final[tuple[tuple[Scope, ...], ...]] = (SAMPLE_SCOPES, ("stream",), ("query",))
_CODES: Final[Mapping[Scope, int]] = {
    scope: int(SeriesPeriod.Scope[(scope or "cluster").upper()]) for scope in KEPT
}
_SCOPES: Final = {code: scope for scope, code in _CODES.items()}
_CHUNK: Final = 500
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def record(cluster: Cluster, periods: Iterable[Period], *, update: bool = False) -> None:
    """Store periods; those that are stored already are unchanged, or replaced with `update`."""
    rows = [
        SeriesPeriod(
            cluster=cluster,
            scope=_CODES[period.scope],
            seconds=period.seconds,
            t=period.t,
            measured_s=period.measured_s,
            data=pack(period.subjects, period.values),
        )
        for period in periods
    ]
    changes: dict[str, Any] = {"ignore_conflicts": True}
    if update:
        changes = {
            "update_conflicts": True,
            "unique_fields": ["cluster", "scope", "seconds", "t"],
            "update_fields": ["measured_s", "data"],
        }
    SeriesPeriod.objects.bulk_create(rows, batch_size=_CHUNK, **changes)


def stored(
    clusters: Collection[int], scopes: Iterable[Scope], seconds: int
) -> QuerySet[SeriesPeriod]:
    """Return the rows of scopes of clusters, of periods of a length, in any order."""
    codes = [_CODES[scope] for scope in scopes]
    rows = SeriesPeriod.objects.filter(cluster__in=clusters, scope__in=codes, seconds=seconds)
    return rows.order_by()


def periods_of(rows: QuerySet[SeriesPeriod]) -> Iterator[tuple[int, Period]]:
    """Yield the periods of rows, each with the id of its cluster."""
    columns = ("cluster_id", "scope", "seconds", "t", "measured_s", "data")
    for cluster, scope, seconds, t, measured_s, data in rows.values_list(*columns):
        yield cluster, Period(_SCOPES[scope], seconds, t, measured_s, *unpack(data))


def newest(cluster: Cluster, *scopes: Scope) -> list[Period]:
    """Return the newest of the shortest periods of scopes, none before the first."""
    rows = stored([cluster.pk], scopes, min(KEPT[scopes[0]]))
    last = rows.filter(scope=_CODES[scopes[0]]).order_by("-t").values("t")[:1]
    return [period for _, period in periods_of(rows.filter(t=Subquery(last)))]


def newest_batches(cluster: Cluster, names: Sequence[str], count: int) -> Grid:
    """Return series of the newest micro-batches."""
    scopes = {figure_of(name).per for name in with_parts(names)}
    rows = stored([cluster.pk], scopes, RAW).order_by("-t")[: count * len(scopes)]
    return grid_of(names, [period for _, period in periods_of(rows)])


def read(
    cluster: Cluster,
    names: Sequence[str],
    start: datetime,
    stop: datetime,
    seconds: int | None = None,
    *,
    nodes: int = 0,
    subjects: Collection[int] | None = None,
) -> Grid:
    """Return series of a cluster at start <= t < stop, see `read_all`.

    Without `seconds`, in the shortest periods that cover the time range in at most 900. `nodes`:
    of at least so many; `subjects`: the ids of the streams or queries, by default of all.
    """
    length = seconds or fitting_seconds(start, stop, figure_of(names[0]).per)
    periods = _read([cluster.pk], names, start, stop, length)[cluster.pk]
    chosen = None if subjects is None else np.array(sorted(subjects), np.int64)
    return grid_of(names, periods, nodes, chosen)


def read_all(
    clusters: Collection[int],
    names: Sequence[str],
    start: datetime,
    stop: datetime,
    seconds: int,
) -> dict[int, Grid]:
    """Return series of clusters at start <= t < stop, in periods of a length.

    Those of samples have the micro-batches after the newest roll-up at their end.
    """
    periods_by_cluster = _read(clusters, names, start, stop, seconds)
    return {cluster: grid_of(names, periods) for cluster, periods in periods_by_cluster.items()}


def _read(
    clusters: Collection[int], names: Sequence[str], start: datetime, stop: datetime, seconds: int
) -> dict[int, list[Period]]:
    scopes: set[Scope] = {figure_of(name).per for name in with_parts(names)}
    periods_by_cluster: dict[int, list[Period]] = {cluster: [] for cluster in clusters}
    within = Q(t__gte=start, t__lt=stop)
    for cluster, period in periods_of(stored(clusters, scopes, seconds).filter(within)):
        periods_by_cluster[cluster].append(period)
    if seconds != RAW and scopes <= set(SAMPLE_SCOPES):
        _add_batches(periods_by_cluster, scopes, within, seconds)
    return periods_by_cluster


def _add_batches(
    periods_by_cluster: Mapping[int, list[Period]],
    scopes: Collection[Scope],
    within: Q,
    seconds: int,
) -> None:
    """Add the micro-batches that follow the roll-ups."""
    ends = {
        cluster: max(period.time for period in periods) + seconds
        for cluster, periods in periods_by_cluster.items()
        if periods
    }
    oldest = datetime.now(UTC).timestamp() - seconds - _LATEST_S
    recent = datetime.fromtimestamp(max(oldest, min(ends.values(), default=0.0)), UTC)
    # A cluster that was started seconds ago has no roll-ups yet.
    for clusters, since in (
        (list(ends), Q(t__gte=recent)),
        ([cluster for cluster in periods_by_cluster if cluster not in ends], Q()),
    ):
        rows = stored(clusters, scopes, RAW).filter(within & since)
        for cluster, period in periods_of(rows) if clusters else ():
            if period.time >= ends.get(cluster, 0.0):
                periods_by_cluster[cluster].append(period)


def fitting_seconds(
    start: datetime,
    stop: datetime,
    scope: Scope = "",
    most: int = MAX_ROWS,
    least: int = RAW,
    now: datetime | None = None,
) -> int:
    """Return the length of the shortest periods that cover a time range, at most `most` of them.

    At least of `least` seconds. The longest ones if all are too many.
    """
    present = now or datetime.now(UTC)
    for seconds, kept in KEPT[scope].items():
        is_kept = present - start <= kept + timedelta(seconds=5)
        if seconds >= least and is_kept and (stop - start).total_seconds() / seconds <= most:
            return seconds
    return max(KEPT[scope])


def start_of(moment: datetime, seconds: int) -> datetime:
    """Return the start of the period of a length that contains a moment."""
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, UTC)


def roll_up(now: datetime) -> int:
    """Write the longer periods that are complete; return how many of each group of scopes."""
    clusters = Cluster.objects.all()
    return sum(_roll_up(cluster, scopes, now) for cluster in clusters for scopes in _GROUPS)


def _roll_up(cluster: Cluster, scopes: Sequence[Scope], now: datetime) -> int:
    until = max((period.end for period in newest(cluster, scopes[0])), default=None)
    if until is None:
        return 0
    written = 0
    for fine, seconds in pairwise(KEPT[scopes[0]]):
        done = stored([cluster.pk], scopes[:1], seconds).aggregate(t=Max("t"))["t"]
        begin = _EPOCH if done is None else done + timedelta(seconds=seconds)
        end = start_of(max(until, now - PATIENCE), seconds)
        rows = stored([cluster.pk], scopes, fine).filter(t__gte=begin, t__lt=end)
        periods = [period for _, period in periods_of(rows)] if begin < end else []
        names = list(dict.fromkeys(name for period in periods for name in period.values))
        grid = grid_of(names, periods).every(seconds)
        record(cluster, (period for scope in scopes for period in _periods(scope, grid, seconds)))
        written += len(grid)
    return written


def _periods(scope: Scope, grid: Grid, seconds: int) -> list[Period]:
    """Return the even periods of a grid, with the values of a scope."""
    values = {
        name: array.reshape(len(grid), -1)
        for name, array in grid.values.items()
        if figure_of(name).per == scope
    }
    width = max((array.shape[1] for array in values.values()), default=0)
    subjects = (grid.subjects if len(grid.subjects) else np.arange(width)).astype(np.float64)
    return [
        Period(
            scope,
            seconds,
            datetime.fromtimestamp(t, UTC),
            grid.measured_s[place],
            subjects,
            {name: array[place] for name, array in values.items()},
        )
        for place, t in enumerate(grid.times.tolist())
    ]


def prune(now: datetime) -> int:
    """Delete the periods that are kept no longer; return how many."""
    deleted = 0
    for scope, lengths in KEPT.items():
        rows = SeriesPeriod.objects.filter(scope=_CODES[scope]).order_by()
        for seconds, kept in lengths.items():
            deleted += rows.filter(seconds=seconds, t__lt=now - kept).delete()[0]
    return deleted


def forget_after(cluster: Cluster, moment: datetime) -> int:
    """Delete the periods after a moment, of a clock that ran ahead; return how many."""
    return SeriesPeriod.objects.filter(cluster=cluster, t__gt=moment).delete()[0]


# Half the size of the raw arrays, at a third of the time of the default level.
_LEVEL: Final = 1
# Smaller ones are read in less time than they are decompressed.
_LARGE: Final = 16_384
_PLAIN: Final = b"\0"
_COMPRESSED: Final = b"\1"
_CODE_BYTES: Final = 2


def code_of(name: str) -> int:
    """Return the code of a series, of two bytes."""
    return zlib.crc32(name.encode()) & 0xFFFF


_NAMES: Final = {code_of(figure.name): figure.name for figure in SERIES}


def pack(subjects: Floats, values: Mapping[str, Floats]) -> bytes:
    """Return the bytes of series of n subjects: `subjects` float64[n], `values` float64[n] each."""
    codes = np.array([len(values), *map(code_of, values)], "<u2")
    arrays = np.concatenate([subjects, *values.values()]).astype("<f8")
    raw = codes.tobytes() + arrays.tobytes()
    return _PLAIN + raw if len(raw) < _LARGE else _COMPRESSED + zlib.compress(raw, _LEVEL)


def unpack(data: bytes) -> tuple[Floats, dict[str, Floats]]:
    """Return subjects and values by name, read-only; series that are not declared are left out."""
    raw = zlib.decompress(data[1:]) if data[:1] == _COMPRESSED else bytes(data[1:])
    start = _CODE_BYTES * (1 + int.from_bytes(raw[:_CODE_BYTES], "little"))
    names = _names_of(raw[:start])
    arrays = np.frombuffer(raw, "<f8", offset=start).reshape(1 + len(names), -1)
    return arrays[0], {
        name: values for name, values in zip(names, arrays[1:], strict=True) if name is not None
    }


@lru_cache(maxsize=256)
def _names_of(header: bytes) -> tuple[str | None, ...]:
    return tuple(_NAMES.get(int(code)) for code in np.frombuffer(header, "<u2")[1:])
