"""Samples of a cluster: the series of the cluster, its nodes and split nodes as one dictionary."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import Any, Final

import numpy as np
from django.db.models import QuerySet

from algorithms.vocabulary import Floats
from controlplane.errors import Invalid
from controlplane.models import Cluster, SeriesPeriod
from controlplane.telemetry import series
from controlplane.telemetry.grid import RAW, Period
from controlplane.telemetry.samples import Sample, moment_of
from controlplane.telemetry.series import MAX_ROWS, fitting_seconds
from controlplane.wire.figures import FIGURES, KEPT, SAMPLE_SCOPES, Unit, figure_of

# Samples of a response of the API: a week of those of 60 s.
MAX_READ: Final = 10_100
RESOLUTIONS: Final = tuple(KEPT[""])
_WHOLE: Final = (Unit.COUNT, Unit.TIME, Unit.BYTES)


def record(cluster: Cluster, samples: Iterable[Sample], seconds: int = RAW) -> None:
    """Store samples; those of a time that is stored already are left out."""
    series.record(cluster, (part for sample in samples for part in parts_of(sample, seconds)))


def parts_of(sample: Sample, seconds: int) -> Iterator[Period]:
    """Yield the values of a sample by scope."""
    t, measured_s = moment_of(sample["t"]), sample.get("span_s") or float(seconds)
    for scope in SAMPLE_SCOPES:
        own = {f.name: sample[f.name] for f in FIGURES if f.per == scope and f.name in sample}
        if not scope:
            own = {name: [value] for name, value in own.items()}
        width = max((len(values) for values in own.values()), default=0)
        values = {name: _array(values, width) for name, values in own.items()}
        yield Period(scope, seconds, t, measured_s, np.arange(width, dtype=np.float64), values)


def _array(values: Sequence[float | None], width: int) -> Floats:
    result = np.full(width, np.nan)
    result[: len(values)] = [np.nan if value is None else value for value in values]
    return result


def samples(
    cluster: Cluster, start: datetime, end: datetime, resolution: int | None = None
) -> list[Sample]:
    """Return the samples with start <= t < end, oldest first.

    Without a resolution the finest is taken that is kept that long and gives at most 900 rows.
    """
    rows = _rows(cluster, resolution or fitting_seconds(start, end))
    return _samples(rows.filter(t__gte=start, t__lt=end))


def require_readable(start: datetime, end: datetime, resolution: int | None) -> None:
    """Raise `Invalid` if a time range has more samples than a response may have."""
    chosen = resolution or fitting_seconds(start, end)
    kept = max(timedelta(0), end - max(start, datetime.now(UTC) - KEPT[""][chosen]))
    rows = kept.total_seconds() / chosen
    if rows > MAX_READ:
        text = f"{rows:,.0f} samples are too many, at most {MAX_READ:,}: request a shorter range"
        raise Invalid({"start": [text]})


def since(cluster: Cluster, t_ms: int) -> list[Sample]:
    """Return the samples after t_ms (ms since the epoch), oldest first, the newest 900 at most.

    This is what a browser missed: raw samples where they reach back far enough.
    """
    end = datetime.now(UTC) + timedelta(minutes=1)
    start = max(_moment(t_ms), end - KEPT[""][60])
    rows = _rows(cluster, fitting_seconds(start, end)).filter(t__gt=start)
    return _samples(rows.order_by("-t", "scope")[: MAX_ROWS * len(SAMPLE_SCOPES)])


def latest_values(cluster: Cluster) -> Sample | None:
    """Return the newest raw sample, None before the first."""
    periods = series.newest(cluster, *SAMPLE_SCOPES)
    return next(_merged(periods), None)


def _rows(cluster: Cluster, seconds: int) -> QuerySet[SeriesPeriod]:
    return series.stored([cluster.pk], SAMPLE_SCOPES, seconds)


def _samples(rows: QuerySet[SeriesPeriod]) -> list[Sample]:
    return list(_merged(sorted((p for _, p in series.periods_of(rows)), key=lambda p: p.t)))


def _merged(periods: Iterable[Period]) -> Iterator[Sample]:
    """Yield the sample of each time of periods in its order."""
    by_time: dict[datetime, Sample] = {}
    for period in periods:
        sample = by_time.get(period.t)
        if sample is None:
            t_ms = round(period.t.timestamp() * 1000)
            sample = by_time[period.t] = {"t": t_ms, "span_s": period.measured_s}
        sample |= _plain(period.values, is_list=period.scope != "")
    yield from by_time.values()


def _plain(values: Mapping[str, Floats], *, is_list: bool) -> dict[str, Any]:
    """Return values as numbers, None for missing ones."""
    result: dict[str, Any] = {}
    for name, array in values.items():
        is_whole = figure_of(name).unit in _WHOLE
        numbers = [_number(value, is_whole=is_whole) for value in array.tolist()]
        result[name] = numbers if is_list else numbers[0]
    return result


def _number(value: float, *, is_whole: bool) -> float | None:
    if isnan(value):
        return None
    return int(value) if is_whole and value.is_integer() else value


def _moment(t_ms: int) -> datetime:
    """Return the moment, the earliest possible one if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(t_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
