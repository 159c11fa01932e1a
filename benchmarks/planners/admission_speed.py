"""How long one optimisation period of admission takes, forecasts included.

    python -m benchmarks.planners.admission_speed [--streams 10000] [--nodes 200] [--repeats 7]

From the rates of the last period to the plan: the forecasts of all streams are updated, expected
rates are computed from forecasts and meta-data, and the strategy places the streams; with
consolidation and forecast overload. All nodes are nearly full, and streams are on drawn nodes.
"""

import argparse
import time
from collections.abc import Sequence
from statistics import median
from typing import Final

import numpy as np

from algorithms.admission.forecasting.holt import HoltState, smoothed
from algorithms.admission.prediction import (
    MetadataColumns,
    Predictions,
    expectations,
    expected_cycle,
)
from algorithms.admission.problem import AdmissionProblem
from algorithms.admission.strategies import Ard, Ari, Drf, DrfM, Par, Profile, Strategy
from algorithms.lab.admission.certificate import check
from algorithms.lab.admission.workloads import WORKLOADS, WorkloadSettings, draw
from algorithms.vocabulary import Floats

STRATEGIES: Final = (Par, Ari, Ard, Drf, DrfM, Profile)
# Periods of history, seconds of a period, periods that are forecast.
HISTORY: Final = 128
PERIOD_S: Final = 10
HORIZON: Final = 3
# The average load of a node.
FULL: Final = 0.9
FILL: Final = 0.95


def main() -> None:
    options = parse_options()
    settings = WorkloadSettings(options.streams, FULL * options.nodes, steps=HISTORY * PERIOD_S)
    for name in WORKLOADS:
        workload = draw(name, settings, 1)
        history = workload.rates.reshape(options.streams, HISTORY, PERIOD_S).mean(axis=2)
        metadata = MetadataColumns.of(workload.metadata)
        before = smoothed(history[:, :-1], 0.5, 0.2)
        for kind in STRATEGIES:
            strategy = kind(foresee=True, fill=FILL, consolidate=True)
            taken = [
                _period(strategy, before, history, metadata, options.nodes)
                for _ in range(options.repeats)
            ]
            print(f"{name:7} {kind.__name__:8} median {1000 * median(taken):6.1f} ms")


def _period(
    strategy: Strategy, before: HoltState, history: Floats, metadata: MetadataColumns, nodes: int
) -> float:
    """Return the seconds of one period; the plan is checked afterwards."""
    capacity = WorkloadSettings().capacity
    owner = np.random.default_rng(1).integers(0, nodes, len(history))
    started = time.perf_counter()
    forecast = np.minimum(before.observed(history[:, -1]).forecast(HORIZON), capacity)
    expected, known = expectations(history, forecast, metadata, PERIOD_S)
    cycle = expected_cycle(history, forecast, metadata, PERIOD_S)
    expected = np.minimum(expected, capacity)
    predictions = Predictions(history[:, -1], forecast, expected, known, cycle)
    problem = AdmissionProblem(capacity, np.full(nodes, capacity), owner, predictions)
    plan = strategy.solve(problem)
    seconds = time.perf_counter() - started
    check(problem, plan)
    return seconds


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000, help="an even number")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=7)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
