"""Streams and workers for tests of groupings."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from algorithms.lab.partitioning.workloads import draw_zipf
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.partitioning.grouping import Grouping, Hashes, Messages, Workers
from algorithms.vocabulary import Ints
from tests.algorithms.partitioning.plain import choose

# Parameters besides the defaults, so that small streams reach the rare cases too.
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "key": ({}, {"weighted": True}),
    "shuffle": ({}, {"weighted": False}),
    "two_choices": ({}, {"seed": 7}),
    "random_choices": ({}, {"eps": 0.0}, {"eps": 0.5, "seed": 3}),
    "bounded_load": ({}, {"eps": 0.0}),
    "consistent_grouping": ({}, {"virtual": 3, "eps": 0.0, "seed": 5}),
    "frequency_aware": ({"period": 1024}, {"top": 3, "parts": 9.0, "spread": False}),
    "head_aware": ({"period": 1024}, {"hot": 0.05, "eps": 0.0}),
    "panes": ({"window_ms": 60, "slide_ms": 25}, {"window_ms": 7, "slide_ms": 7}),
    "rate_aware": (
        {"window_ms": 60, "slide_ms": 25},
        {"window_ms": 90, "slide_ms": 30, "slack": 0.02, "open_panes": 3},
    ),
}


def variants() -> Iterator[Any]:
    """Yield every grouping with its variants of parameters."""
    for name, info in GROUPINGS.items():
        for values in VARIANTS.get(name, ({},)):
            yield info.parameters.from_mapping(values)


def describe(grouping: Grouping[Any]) -> str:
    fields = grouping.fields()
    changed = [f for f in fields if getattr(grouping, f.name) != f.default]
    return "-".join([grouping.name, *(f"{f.name}={getattr(grouping, f.name)}" for f in changed)])


@st.composite
def workers(draw: st.DrawFn) -> Workers:
    count = draw(st.integers(1, 9))
    capacities = st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.7]), min_size=count, max_size=count)
    return Workers.of(count, draw(st.none() | capacities))


@st.composite
def messages(draw: st.DrawFn, most: int = 120) -> Messages:
    """Return messages of few keys in a disorder of times, or without times."""
    pool = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6))
    keys = draw(st.lists(st.sampled_from(pool), max_size=most))
    steps = st.lists(st.integers(-40, 60), min_size=len(keys), max_size=len(keys))
    times = None
    if draw(st.booleans()):
        times = np.maximum(0, 1_000 + np.cumsum(np.array(draw(steps), np.int64)))
    return Messages(np.array(keys, np.uint64), times)


def zipf(z: float, distinct: int, count: int, seed: int = 0) -> Hashes:
    return draw_zipf(z, distinct, count, seed).keys


def chosen(grouping: Grouping[Any], state: Any, stream: Messages) -> tuple[Ints, Any]:
    """Return what the plain code assigns, message by message, and the state after it."""
    result = np.empty(len(stream), np.int64)
    times = [None] * len(stream) if stream.times is None else stream.times.tolist()
    for place, (key, time) in enumerate(zip(stream.keys.tolist(), times, strict=True)):
        result[place], state = choose(grouping, state, key, time)
    return result, state
