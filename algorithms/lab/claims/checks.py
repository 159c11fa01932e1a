"""Checks of claims: courses of curves, comparisons of series, limits.

Each check is a value that decides a claim from the results of one run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from algorithms.lab.claims.claim import Check, Finding, Outcome, Results

# Fewer values of x show no course.
_LEAST_VALUES: Final = 2


@dataclass(frozen=True)
class Course:
    """Check that y rises (or falls) with x for each series, from the first to the last value.

    `dip`: the largest fall of the mean between neighbours, relative to the range of the curve.
    `least`: the least factor between the ends.
    """

    y: str
    series: tuple[str, ...]
    rises: bool = True
    dip: float = 0.05
    least: float = 1.0

    def __call__(self, results: Results) -> Finding:
        """Return whether all curves have this course."""
        lacking = _lacking(results, self.series, self.y)
        if lacking:
            return lacking
        curves = {name: results.curve(name, self.y) for name in self.series}
        holds = all(self._is_course(curve) for curve in curves.values()) and all(
            self._ends_agree(results.curve(name, self.y, seed))
            for name in self.series
            for seed in results.seeds()
        )
        return _finding(
            holds, "; ".join(_ends(results.title(name), curve) for name, curve in curves.items())
        )

    def _is_course(self, curve: Mapping[float, float]) -> bool:
        values = _ordered(curve, self.rises)
        room = self.dip * (max(values) - min(values))
        steps = pairwise(values)
        return all(after >= before - room for before, after in steps) and self._ends_agree(curve)

    def _ends_agree(self, curve: Mapping[float, float]) -> bool:
        values = _ordered(curve, self.rises)
        return len(values) < _LEAST_VALUES or (
            values[-1] > values[0] and values[-1] >= self.least * values[0]
        )


@dataclass(frozen=True)
class Below:
    """Check that one series is below others for every x of a range, in the mean and in all seeds.

    `slack`: how far it may be above, relative to the other. `factor`: how many times lower it must
    be. `above`, `below`: the range of x, inclusive; it must have a value of the run.
    """

    y: str
    lower: str
    others: tuple[str, ...]
    slack: float = 0.0
    factor: float = 1.0
    above: float = float("-inf")
    below: float = float("inf")

    def __call__(self, results: Results) -> Finding:
        """Return whether it is below all of them, with the closest pair as evidence."""
        lacking = _lacking(results, (self.lower, *self.others), self.y, least=1)
        if lacking:
            return lacking
        pairs = self._pairs(results, None)
        if not pairs:
            return Finding(Outcome.UNTESTED, f"No value of x is in {self._range()}")
        seeds = [pair for seed in results.seeds() for pair in self._pairs(results, seed)]
        holds = all(self._is_below(ours, theirs) for _, _, ours, theirs in (*pairs, *seeds))
        x, other, ours, theirs = max(pairs, key=lambda pair: _ratio(pair[2], pair[3]))
        names = results.title(self.lower), results.title(other)
        text = f"{names[0]} {_figure(ours)} against {_figure(theirs)} of {names[1]}"
        return _finding(holds, f"{'Closest' if holds else 'Worst'} at {x:g}: {text}")

    def _is_below(self, ours: float, theirs: float) -> bool:
        return ours * self.factor <= theirs * (1 + self.slack) + 1e-12

    def _range(self) -> str:
        return f"the range from {self.above:g} to {self.below:g}"

    def _pairs(self, results: Results, seed: int | None) -> list[tuple[float, str, float, float]]:
        ours = results.curve(self.lower, self.y, seed)
        return [
            (x, other, ours[x], theirs)
            for other in self.others
            for x, theirs in results.curve(other, self.y, seed).items()
            if x in ours and self.above <= x <= self.below
        ]


@dataclass(frozen=True)
class TimesBetter:
    """Check that a series is at least `least` times below another one at some x, in the mean."""

    y: str
    better: str
    worse: str
    least: float

    def __call__(self, results: Results) -> Finding:
        """Return whether the largest factor reaches it."""
        lacking = _lacking(results, (self.better, self.worse), self.y, least=1)
        if lacking:
            return lacking
        ours, theirs = results.curve(self.better, self.y), results.curve(self.worse, self.y)
        factors = {x: _ratio(theirs[x], ours[x]) for x in ours if x in theirs}
        x = max(factors, key=factors.__getitem__)
        better, worse = results.title(self.better), results.title(self.worse)
        names = f"{better} {_figure(ours[x])}, {worse} {_figure(theirs[x])}"
        text = f"At {x:g}: {names}, {factors[x]:.2g} times"
        return _finding(factors[x] >= self.least, text)


@dataclass(frozen=True)
class Close:
    """Check that two series differ by at most `most`, relative to the second, for every x."""

    y: str
    first: str
    second: str
    most: float

    def __call__(self, results: Results) -> Finding:
        """Return whether the largest difference is within it."""
        lacking = _lacking(results, (self.first, self.second), self.y, least=1)
        if lacking:
            return lacking
        ours, theirs = results.curve(self.first, self.y), results.curve(self.second, self.y)
        apart = {x: abs(_ratio(ours[x], theirs[x]) - 1) for x in ours if x in theirs}
        x = max(apart, key=apart.__getitem__)
        first, second = results.title(self.first), results.title(self.second)
        pair = f"{first} {_figure(ours[x])}, {second} {_figure(theirs[x])}"
        return _finding(apart[x] <= self.most, f"Farthest apart at {x:g}: {pair}")


@dataclass(frozen=True)
class Steady:
    """Check that y of each series changes with x by at most `most`, relative to its least value."""

    y: str
    series: tuple[str, ...]
    most: float

    def __call__(self, results: Results) -> Finding:
        """Return whether the ranges of all curves are within it."""
        lacking = _lacking(results, self.series, self.y)
        if lacking:
            return lacking
        curves = {name: list(results.curve(name, self.y).values()) for name in self.series}
        ranges = {name: (min(values), max(values)) for name, values in curves.items()}
        holds = all(high <= low * (1 + self.most) for low, high in ranges.values())
        text = "; ".join(
            f"{results.title(name)} {_figure(low)} to {_figure(high)}"
            for name, (low, high) in ranges.items()
        )
        return _finding(holds, text)


@dataclass(frozen=True)
class SubLinear:
    """Check that y grows less than x does, relative to their first values, for each series."""

    y: str
    series: tuple[str, ...]

    def __call__(self, results: Results) -> Finding:
        """Return whether the factors of all curves are below that of x."""
        lacking = _lacking(results, self.series, self.y)
        if lacking:
            return lacking
        curves = {name: results.curve(name, self.y) for name in self.series}
        holds = all(
            _ratio(curve[max(curve)], curve[min(curve)]) < max(curve) / min(curve)
            for curve in curves.values()
        )
        return _finding(
            holds, "; ".join(_ends(results.title(name), curve) for name, curve in curves.items())
        )


@dataclass(frozen=True)
class Limited:
    """Check that y of each series is at most a limit (or at least a floor) in a range of x."""

    y: str
    series: tuple[str, ...]
    most: float = float("inf")
    least: float = float("-inf")
    above: float = float("-inf")
    below: float = float("inf")

    def __call__(self, results: Results) -> Finding:
        """Return whether all means and all values of seeds are within it."""
        lacking = _lacking(results, self.series, self.y, least=1)
        if lacking:
            return lacking
        values = [
            (value, x, name)
            for name in self.series
            for seed in (None, *results.seeds())
            for x, value in results.curve(name, self.y, seed).items()
            if self.above <= x <= self.below
        ]
        if not values:
            text = f"No value of x is in the range from {self.above:g} to {self.below:g}"
            return Finding(Outcome.UNTESTED, text)
        holds = all(self.least <= value <= self.most for value, _, _ in values)
        value, x, name = max(values) if self.most < float("inf") else min(values)
        word = "Largest" if self.most < float("inf") else "Smallest"
        return _finding(holds, f"{word}: {_figure(value)} of {results.title(name)} at {x:g}")


@dataclass(frozen=True)
class GapGrows:
    """Check that one series falls behind another as x grows: y of `worse` over y of `better`."""

    y: str
    better: str
    worse: str

    def __call__(self, results: Results) -> Finding:
        """Return whether the factor is larger at the last x than at the first."""
        lacking = _lacking(results, (self.better, self.worse), self.y)
        if lacking:
            return lacking
        ours, theirs = results.curve(self.better, self.y), results.curve(self.worse, self.y)
        shared = sorted(x for x in ours if x in theirs)
        factors = {x: _ratio(theirs[x], ours[x]) for x in shared}
        text = ", ".join(f"{factors[x]:.3g} at {x:g}" for x in (shared[0], shared[-1]))
        names = f"{results.title(self.worse)} over {results.title(self.better)}"
        return _finding(factors[shared[-1]] > factors[shared[0]], f"{names}: {text}")


@dataclass(frozen=True)
class Each:
    """Check that several checks hold together; the evidence is that of the checks that fail."""

    checks: tuple[Check, ...]

    def __call__(self, results: Results) -> Finding:
        """Return FAILS if one fails, UNTESTED if none fails and one is not testable."""
        findings = [check(results) for check in self.checks]
        for outcome in (Outcome.FAILS, Outcome.UNTESTED):
            texts = [finding.evidence for finding in findings if finding.outcome is outcome]
            if texts:
                return Finding(outcome, "; ".join(texts))
        return Finding(Outcome.HOLDS, "; ".join(finding.evidence for finding in findings))


def _lacking(
    results: Results, series: Sequence[str], y: str, least: int = _LEAST_VALUES
) -> Finding | None:
    """Return why a claim about these series is not testable, None if it is."""
    missing = [name for name in series if not results.has(name)]
    if missing:
        return Finding(Outcome.UNTESTED, f"The run has no {', '.join(map(results.title, missing))}")
    values = min((len(results.curve(name, y)) for name in series), default=0)
    if values < least:
        return Finding(Outcome.UNTESTED, f"At least {least} values of x are needed")
    return None


def _finding(holds: bool, evidence: str) -> Finding:
    return Finding(Outcome.HOLDS if holds else Outcome.FAILS, evidence)


def _ordered(curve: Mapping[float, float], rises: bool) -> list[float]:
    values = [curve[x] for x in sorted(curve)]
    return values if rises else values[::-1]


def _ends(title: str, curve: Mapping[float, float]) -> str:
    """Return the first, the middle and the last value of a curve as text."""
    xs = sorted(curve)
    shown = dict.fromkeys((xs[0], xs[len(xs) // 2], xs[-1]))
    return f"{title} {', '.join(f'{_figure(curve[x])} at {x:g}' for x in shown)}"


def _ratio(value: float, to: float) -> float:
    if to == 0:
        return 1.0 if value == 0 else float("inf")
    return value / to


def _figure(value: float) -> str:
    return f"{value:,.4g}"
