"""Feasible input tables of nodes without children (section 6.2)."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.lab.shedding.fit.complementary import DropList
from algorithms.lab.shedding.fit.cover import COVER_ABOVE, covering_rows
from algorithms.lab.shedding.fit.local import LocalModel, Worth
from algorithms.lab.shedding.fit.sampling import Precision, grid, samples
from algorithms.lab.shedding.fit.table import RowPlans, Table, Weights, is_needed
from algorithms.vocabulary import Floats, Ints

NUMBER_BYTES: Final = 8
# A value that is 0 but for rounding, relative to what a record yields.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Settings:
    """What a node receives from its parent before it samples.

    `limits` float64[k, e]: parts of upstream resources per record of each stream; other rates
    cannot arrive. `outer`: whether the table may leave out rows by `is_needed`: the node knows
    the limits of all nodes upstream, or its parent mixes rows. `epsilon`: the error of plans if the
    node knows the limits of all nodes upstream and is the only child of each, else 0.
    """

    precision: Precision
    limits: Floats
    outer: bool
    epsilon: float

    @property
    def key(self) -> tuple[object, ...]:
        """Return the contents, to compare settings."""
        limits = self.limits
        return self.precision, self.outer, self.epsilon, limits.shape, limits.tobytes()

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return (self.limits.size + 3) * NUMBER_BYTES + 1


def levels_of(local: LocalModel, settings: Settings, worth: Worth, tops: Floats) -> list[Floats]:
    """Return the samples of each stream up to its largest feasible rate, ascending."""
    losses = worth.values - worth.free
    losses[losses < _ROUNDING * worth.values] = 0.0
    with np.errstate(divide="ignore"):
        upstream = 1 / settings.limits.max(axis=0, initial=0.0)
    return [
        samples(float(top), settings.precision, float(loss), f"inputs.{name.strip()}")
        for name, top, loss in zip(
            local.cluster.streams, np.minimum(tops, upstream), losses, strict=True
        )
    ]


def at_levels(levels: list[Floats], places: Ints) -> Floats:
    """Return the rates of combinations of samples, float64[n, e]."""
    return np.column_stack([level[column] for level, column in zip(levels, places.T, strict=True)])


@dataclass(frozen=True, eq=False)
class WholePlans:
    """Plans of rows without drops at splits, on a node without split edges."""

    rates: Floats

    def flows(self, row: int) -> Floats:
        """Return the flows of the streams, float64[e]."""
        return np.asarray(self.rates[row])

    def children(self, row: int) -> list[Weights | None]:
        """Return that the node has no children."""
        return []


def linear_table(local: LocalModel, settings: Settings, worth: Worth) -> tuple[Table, RowPlans]:
    """Return the table of a leaf without splits: results are linear in the rates."""
    levels = levels_of(local, settings, worth, local.useful_rates(np.zeros(0)))
    limits = np.vstack([local.limits, settings.limits])
    places = grid(levels, limits, outer=settings.outer)
    values = worth.values - worth.free
    if settings.epsilon > 0 and len(places) > COVER_ABOVE:
        places = places[covering_rows(levels, places, limits, values, settings.epsilon)]
    rates = at_levels(levels, places)
    return Table(rates, rates @ values, np.ones(len(rates), np.bool_)), WholePlans(rates)


@dataclass(frozen=True, eq=False)
class DropPlans:
    """Plans of rows with complementary local plans."""

    drops: DropList
    rates: Floats
    stages: Ints
    parts: Floats

    def flows(self, row: int) -> Floats:
        """Return the flows of the drop locations, float64[d]."""
        return self.drops.flows(self.rates[row], int(self.stages[row]), float(self.parts[row]))

    def children(self, row: int) -> list[Weights | None]:
        """Return that the node has no children."""
        return []


def split_table(local: LocalModel, settings: Settings, worth: Worth) -> tuple[Table, RowPlans]:
    """Return the table of a leaf with splits and one resource: rows feasible with a plan."""
    drops = DropList.of(local.model, local.model.weights)
    last = drops.loads[drops.last, np.arange(len(drops.last))]
    with np.errstate(divide="ignore"):
        tops = np.minimum(local.useful_rates(np.zeros(0)), 1 / last)
    levels = levels_of(local, settings, worth, tops)
    limits = np.vstack([local.forced, settings.limits])
    rates = at_levels(levels, grid(levels, limits, outer=False))
    stages, parts, scores = drops.place(rates)
    feasible = stages >= 0
    table = Table(rates, scores - rates @ worth.free, stages == 0).take(feasible)
    kept = np.flatnonzero(feasible)
    if settings.outer:
        needed = is_needed(table)
        table, kept = table.take(needed), kept[needed]
    return table, DropPlans(drops, table.rates, stages[kept], parts[kept])
