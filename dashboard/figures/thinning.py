"""Reduction of samples for a chart, with visible gaps."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dashboard.figures.parts import MAX_POINTS

Sample = dict[str, Any]
# Samples further apart than so many usual steps have a gap between them.
GAP_STEPS = 6


def thin_samples(samples: Sequence[Sample], points: int = MAX_POINTS) -> list[Sample]:
    """Return at most `points` samples, each standing for as many in a row."""
    size = -(-len(samples) // points)
    if size <= 1:
        return list(samples)
    return [merge_samples(samples[i : i + size]) for i in range(0, len(samples), size)]


def merge_samples(samples: Sequence[Sample]) -> Sample:
    """Return the merged sample of several: the last time, the longest duration, means of others."""
    return {name: _merged(name, [sample.get(name) for sample in samples]) for name in samples[-1]}


def _merged(name: str, values: list[Any]) -> Any:
    if name == "t":
        return values[-1]
    known = [value for value in values if value is not None]
    if not known:
        return None
    return max(known) if name == "duration_ms" else sum(known) / len(known)


def with_gaps(samples: Sequence[Sample], least_ms: float = 0) -> list[Sample]:
    """Return the samples with an empty one in every gap, so that lines break there.

    `least_ms`: the length of the shortest gap.
    """
    limit = max(gap_ms(samples), least_ms)
    shown: list[Sample] = []
    for sample in samples:
        if shown and sample["t"] - shown[-1]["t"] > limit:
            shown.append({"t": shown[-1]["t"] + 1})
            shown.append({"t": sample["t"] - 1})
        shown.append(sample)
    return shown


def gap_ms(samples: Sequence[Sample]) -> float:
    """Return the distance in ms from which on two neighbours have a gap between them."""
    steps = sorted(after["t"] - before["t"] for before, after in pairwise(samples))
    return GAP_STEPS * max(steps[len(steps) // 2], 1000) if steps else float("inf")
