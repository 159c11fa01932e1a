"""Series of a cluster as arrays over time, and how the values of several periods become one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from algorithms.vocabulary import Flags, Floats, Ints
from controlplane.wire.figures import RollUp, Scope, figure_of, with_parts

# The length of the periods that are micro-batches.
RAW: Final = 1


@dataclass(frozen=True, eq=False)
class Period:
    """The values of a scope in one period, as in `SeriesPeriod`.

    `subjects` float64[n]: indices or ids, ascending, one 0 for the cluster; `values` float64[n] by
    name.
    """

    scope: Scope
    seconds: int
    t: datetime
    measured_s: float
    subjects: Floats
    values: Mapping[str, Floats]

    @property
    def end(self) -> datetime:
        """Return up to where it is measured."""
        return self.t if self.seconds == RAW else self.t + timedelta(seconds=self.measured_s)

    @property
    def time(self) -> float:
        """Return `t` in s since the epoch."""
        return self.t.timestamp()


@dataclass(frozen=True, eq=False)
class Grid:
    """Series of a cluster in t periods, oldest first; NaN for missing values.

    `times` float64[t]: the starts of the periods, of micro-batches their ends, in s since the
    epoch. `measured_s` float64[t]: the measured seconds of each. `subjects` int64[n]: ids of
    streams or queries, ascending; nodes and split nodes are at their index. `values` by name:
    float64[t] of the cluster, float64[t, n] of others.
    """

    times: Floats
    measured_s: Floats
    subjects: Ints
    values: Mapping[str, Floats]

    def __getitem__(self, name: str) -> Floats:
        """Return the values of a series."""
        return self.values[name]

    def __len__(self) -> int:
        """Return the number of periods."""
        return len(self.times)

    @property
    def starts(self) -> list[datetime]:
        """Return `times` as moments."""
        return [datetime.fromtimestamp(time, UTC) for time in self.times.tolist()]

    @property
    def loads(self) -> Floats:
        """Return the records/s that arriving records cause at nodes, float64[t, n]."""
        return self.arriving("loads")

    def arriving(self, name: str) -> Floats:
        """Return the part of a rate of nodes or split nodes that arriving records cause.

        Also while a backlog is worked off. It needs the series `arrived` and `in`, too.
        """
        arrived, read = self["arrived"], self["in"]
        known = ~np.isnan(arrived) & (np.nan_to_num(read) > 0)
        share = np.where(known, arrived / np.where(known, read, 1.0), 1.0)
        rates: Floats = self[name] * share[:, None]
        return rates

    def column(self, values: Floats, index: int) -> Floats:
        """Return the values of a node of one of the arrays, float64[t]; NaN for an unknown node."""
        missing = np.full(len(self), np.nan)
        own: Floats = values[:, index] if index < values.shape[1] else missing
        return own

    def window(self) -> "Grid":
        """Return all periods as one; without any, one of missing values."""
        if len(self):
            return self.merged(np.zeros(len(self), np.int64))
        missing = {n: np.full((1, *v.shape[1:]), np.nan) for n, v in self.values.items()}
        return Grid(np.zeros(1), np.zeros(1), self.subjects, missing)

    def between(self, values: Floats, start: datetime, stop: datetime) -> Floats:
        """Return the values of one of the arrays at start < t <= stop."""
        within = (self.times > start.timestamp()) & (self.times <= stop.timestamp())
        chosen: Floats = values[within]
        return chosen

    def window_of(self, start: datetime, stop: datetime) -> "Grid":
        """Return the periods at start <= t < stop as one."""
        within = (self.times >= start.timestamp()) & (self.times < stop.timestamp())
        return self.where(within).window()

    def where(self, chosen: Flags | Ints | slice) -> "Grid":
        """Return some of the periods; `chosen` bool[t], their places, or a part in order."""
        values = {name: array[chosen] for name, array in self.values.items()}
        return Grid(self.times[chosen], self.measured_s[chosen], self.subjects, values)

    def since(self, start: datetime) -> "Grid":
        """Return the periods from a moment on."""
        return self.where(self.times >= start.timestamp())

    def merged(self, slots: Ints) -> "Grid":
        """Return the periods of equal slots as one each, at the time of the first.

        `slots` int64[t]: ascending numbers.
        """
        if not len(self):
            return self
        firsts = np.flatnonzero(np.diff(slots, prepend=slots[0] - 1))
        values = {
            name: merged(figure_of(name).roll_up, array, self._weights(name), firsts)
            for name, array in self.values.items()
        }
        measured_s = np.add.reduceat(self.measured_s, firsts)
        grid = Grid(self.times[firsts], measured_s, self.subjects, values)
        return grid._with_imbalance() if "imbalance" in values else grid

    def trailing(self, seconds: float) -> "Grid":
        """Return each period merged with those of so many seconds before its time."""
        starts = np.searchsorted(self.times, self.times - seconds, side="right")
        counts = np.arange(1, len(self) + 1) - starts
        ends = np.cumsum(counts)
        places = np.arange(counts.sum()) - np.repeat(ends - counts - starts, counts)
        grid = self.where(places).merged(np.repeat(np.arange(len(self)), counts))
        return replace(grid, times=self.times)

    @property
    def shares(self) -> Floats:
        """Return the load of active nodes over their capacity, float64[t, n].

        It needs the series of `loads`, and `capacity`.
        """
        shares: Floats = self.loads / self["capacity"]
        return shares

    def _with_imbalance(self) -> "Grid":
        """Return the grid with the imbalance of its loads, where these are known."""
        shares = self.shares
        known = ~np.isnan(shares)
        counts = known.sum(axis=1)
        above = np.where(known, shares, -np.inf).max(axis=1, initial=0.0)
        is_loaded = above > 0
        mean = np.where(known, shares, 0.0).sum(axis=1) / np.maximum(counts, 1)
        of_loads = np.where(is_loaded, above - mean, self["imbalance"])
        return replace(self, values={**self.values, "imbalance": of_loads})

    def _weights(self, name: str) -> Floats:
        """Return the weights of the values of a series in a mean, float64[t]."""
        over = figure_of(name).over
        if not over or over not in self.values:
            return self.measured_s
        # Where the denominator is not known, seconds alone weigh.
        weights: Floats = self.measured_s * np.nan_to_num(self[over], nan=1.0)
        return weights

    def every(self, seconds: int) -> "Grid":
        """Return the periods merged into even ones of a length; empty ones are left out."""
        slots = self.slots(seconds)
        grid = self.merged(slots)
        times = np.unique(slots).astype(np.float64) * seconds
        return Grid(times, grid.measured_s, grid.subjects, grid.values)

    def slots(self, seconds: int) -> Ints:
        """Return the number of the even period of a length of each, since the epoch, int64[t]."""
        slots: Ints = np.floor(np.round(self.times, 6) / seconds).astype(np.int64)
        return slots


def merged(roll_up: RollUp, values: Floats, weights: Floats, firsts: Ints) -> Floats:
    """Return one row for each group of rows, which begin at `firsts`.

    `values` float64[t] or float64[t, n]; `weights` float64[t].
    """
    rows = values.reshape(len(values), -1)
    known = ~np.isnan(rows)
    result: Floats
    if roll_up is RollUp.LAST:
        places = np.where(known, np.arange(len(rows))[:, None], -1)
        last = np.maximum.reduceat(places, firsts, axis=0)
        newest = np.take_along_axis(rows, np.maximum(last, 0), axis=0)
        result = np.where(last < 0, np.nan, newest)
    elif roll_up is RollUp.MAX:
        result = np.fmax.reduceat(rows, firsts, axis=0)
    else:
        weighted = known * (1.0 if roll_up is RollUp.SUM else weights[:, None])
        totals = np.add.reduceat(np.nan_to_num(rows) * weighted, firsts, axis=0)
        sums = np.add.reduceat(weighted, firsts, axis=0)
        divisors = np.where(sums > 0, 1.0 if roll_up is RollUp.SUM else sums, np.nan)
        result = totals / divisors
    return result.reshape(len(firsts), *values.shape[1:])


def means(values: Floats) -> Floats:
    """Return the means of the columns of known values, NaN without one."""
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    result: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return result


def mean(values: Floats) -> float | None:
    """Return the mean of the known values, None without one."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def grid_of(
    names: Sequence[str], periods: Sequence[Period], nodes: int = 0, subjects: Ints | None = None
) -> Grid:
    """Return series of periods as arrays: of at least so many nodes; `subjects`: of all, or these.

    Ratios come with their denominators. Streams and queries must not be mixed.
    """
    names = with_parts(names)
    times = sorted({period.t for period in periods})
    places = {t: place for place, t in enumerate(times)}
    measured_s = np.zeros(len(times))
    for period in periods:
        measured_s[places[period.t]] = period.measured_s
    seconds = np.array([time.timestamp() for time in times], np.float64)
    chosen = subjects
    values: dict[str, Floats] = {}
    for scope in dict.fromkeys(figure_of(name).per for name in names):
        own = [period for period in periods if period.scope == scope]
        series = [name for name in names if figure_of(name).per == scope]
        if scope in ("stream", "query") and chosen is None:
            chosen = _subjects(own)
        width = _width(scope, own, nodes) if chosen is None else len(chosen)
        arrays = {name: np.full((len(times), width), np.nan) for name in series}
        columns = _Columns(None if scope in ("", "node", "split") else chosen)
        for period in own:
            target, source = columns.of(period.subjects)
            for name in series:
                if name in period.values:
                    arrays[name][places[period.t], target] = period.values[name][source]
        values |= {name: arr[:, 0] if scope == "" else arr for name, arr in arrays.items()}
    return Grid(seconds, measured_s, np.zeros(0, np.int64) if chosen is None else chosen, values)


def _width(scope: Scope, periods: Sequence[Period], nodes: int) -> int:
    least = {"": 1, "node": nodes}.get(scope, 0)
    return max([least, *(len(period.subjects) for period in periods)])


def _subjects(periods: Sequence[Period]) -> Ints:
    every = {period.subjects.tobytes(): period.subjects for period in periods}
    return np.unique(np.concatenate([np.zeros(0), *every.values()])).astype(np.int64)


class _Columns:
    """Where the subjects of a period are in the arrays; most periods have the same subjects."""

    def __init__(self, chosen: Ints | None) -> None:
        self._chosen = chosen
        self._subjects: Floats | None = None
        self._columns: tuple[Ints, Ints] = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def of(self, subjects: Floats) -> tuple[Any, Any]:
        """Return the columns of the arrays, and the places of their values in the period."""
        if self._chosen is None:
            return slice(len(subjects)), slice(None)
        if subjects is not self._subjects:
            places = np.searchsorted(subjects, self._chosen)
            nearest = np.minimum(places, max(len(subjects) - 1, 0))
            present = subjects[nearest] == self._chosen if len(subjects) else places < 0
            target = np.flatnonzero(present)
            self._subjects, self._columns = subjects, (target, places[target])
        return self._columns
