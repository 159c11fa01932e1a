"""Recorded rates of two inputs: packets, web requests and requests to language models.

Each trace has the numbers of events of two streams in consecutive windows, from 10 ms to 10 s. The
paper uses TCP traces of the same archive (section 8.1). The file belongs in the folder of data
sets.
"""

import csv
import gzip
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from algorithms.errors import BadProblem
from algorithms.lab.datasets import data_folder
from algorithms.vocabulary import Floats

RATES_FILE: Final = "two_input_rates.csv.gz"


def recorded_traces() -> tuple[str, ...]:
    """Return the names of the traces. Raises `BadProblem` without the file."""
    return tuple(sorted(_read(data_folder() / RATES_FILE)))


def recorded_rates(trace: str, mean: float | None = None) -> Floats:
    """Return the rates of both inputs in each window, float64[n, 2], in records/s.

    With a mean, both are scaled by one factor so that this is the mean of all rates. Raises
    `BadProblem` for an unknown trace, which names the known ones, and without the file.
    """
    traces = _read(data_folder() / RATES_FILE)
    if trace not in traces:
        raise BadProblem("trace", f"{trace!r} is unknown; known: {', '.join(sorted(traces))}")
    rates = traces[trace]
    return rates.copy() if mean is None else rates * (mean / rates.mean())


@lru_cache(maxsize=1)
def _read(path: Path) -> dict[str, Floats]:
    rows: dict[str, list[tuple[float, float]]] = {}
    try:
        with gzip.open(path, "rt", newline="") as file:
            for row in csv.DictReader(file):
                window_s = int(row["window_ms"]) / 1000
                pair = int(row["a"]) / window_s, int(row["b"]) / window_s
                rows.setdefault(row["trace"], []).append(pair)
    except OSError as error:
        raise BadProblem(str(path), "cannot be read") from error
    except (KeyError, ValueError, TypeError, ZeroDivisionError) as error:
        raise BadProblem(str(path), "needs the columns trace, window_ms, a and b") from error
    traces = {name: np.array(pairs, np.float64) for name, pairs in rows.items()}
    silent = [name for name, rates in traces.items() if not rates.sum() > 0]
    if silent or not traces:
        raise BadProblem(str(path), f"has no events in {silent[0]}" if silent else "has no rows")
    return traces
