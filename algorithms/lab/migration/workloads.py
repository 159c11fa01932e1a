"""Workloads of section 6: tasks with work and state, and the numbers of nodes over time.

The numbers of nodes are recorded by the hour, or follow a daily rhythm with noise.
"""

import csv
import gzip
from functools import lru_cache
from pathlib import Path

import numpy as np

from algorithms.errors import BadProblem
from algorithms.lab.datasets import data_folder
from algorithms.vocabulary import Floats, Ints

DEMAND_FILE = "node_demand_hourly.csv.gz"
RECORDED = ("nyc_taxi", "tweet_mentions", "worldcup98", "cab_reports")
DAILY = "daily"
# Mandelbrot's shift of ranks in Zipf's law for English text.
_SHIFT = 2.7
# Bytes of a counter with its key, and of a pattern with its windows.
_WORD_BYTES = 40.0
_PATTERN_BYTES = 64.0


def node_numbers(series: str, seed: int = 0, least: int = 8, most: int = 16) -> Ints:
    """Return the node numbers of a series with repetitions left out, int64[...].

    `daily` is drawn, between `least` and `most`; the others are recorded (8 to 16) and need the
    file `node_demand_hourly.csv.gz` in the folder of data sets. Raises `BadProblem` without it.
    """
    numbers = (
        _daily(seed, least, most) if series == DAILY else _read_recorded(data_folder(), series)
    )
    changes: Ints = numbers[np.concatenate([[True], np.diff(numbers) != 0])]
    return changes


def _daily(seed: int, least: int, most: int, days: int = 240) -> Ints:
    """Draw hours of demand: a sine over the day, a week end, noise that lasts for hours."""
    draw = np.random.default_rng((seed, 13))
    hours = np.arange(24 * days)
    noise = np.convolve(draw.normal(0, 0.12, len(hours)), np.ones(3) / 3, "same")
    weekend = np.where(hours // 24 % 7 >= 5, -0.15, 0.0)  # noqa: PLR2004 - Saturday, Sunday
    level = np.clip(0.5 - 0.45 * np.cos(hours * np.pi / 12) + weekend + noise, 0.0, 1.0)
    return np.rint(least + (most - least) * level).astype(np.int64)


@lru_cache(maxsize=8)
def _read_recorded(folder: Path, series: str) -> Ints:
    path = folder / DEMAND_FILE
    try:
        with gzip.open(path, "rt", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["series"] == series]
    except OSError as error:
        raise BadProblem("demand", f"{series} needs {path}, which cannot be read") from error
    if not rows:
        raise BadProblem("demand", f"{path} has no series {series}")
    return np.array([int(row["nodes_clipped"]) for row in rows], np.int64)


def word_count(
    tasks: int, seed: int, words: int = 50_000, exponent: float = 1.0
) -> tuple[Floats, Floats]:
    """Return work and state of counting words, each float64[m].

    Words are hashed to tasks; their frequencies follow the law of Zipf and Mandelbrot. A task's
    work is the share of its words in the text, its state one counter per word, so work is uneven
    and state is nearly even.
    """
    draw = np.random.default_rng((seed, 11))
    frequency = (np.arange(1, words + 1) + _SHIFT) ** -exponent
    task = draw.integers(0, tasks, words)
    work = np.bincount(task, frequency / frequency.sum(), tasks).astype(np.float64)
    state = np.bincount(task, minlength=tasks).astype(np.float64)
    return work, _WORD_BYTES * state


def frequent_patterns(
    tasks: int, seed: int, window: float = 90.0, patterns_per_second: float = 1e6
) -> tuple[Floats, Floats]:
    """Return work and state of mining frequent patterns, each float64[m].

    Nearly all patterns are rare, so a task's work is the number of its patterns in the window of
    so many seconds, and its state grows with it; both are about even.
    """
    draw = np.random.default_rng((seed, 12))
    patterns: Floats = window * patterns_per_second / tasks * draw.lognormal(0.0, 0.1, tasks)
    return patterns * draw.lognormal(0.0, 0.1, tasks), patterns * _PATTERN_BYTES
