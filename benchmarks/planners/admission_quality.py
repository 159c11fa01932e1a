"""Split nodes, redirections and buffered records of the strategies of admission in simulations.

    python -m benchmarks.planners.admission_quality [--seeds 3] [--limit 0.02] [--steps 2400]

Three tables, per workload and strategy the mean over the seeds and each value:

1. Without consolidation: every strategy, and its redirections relative to those of PAR.
2. With consolidation and forecast overload, at each fill of split nodes.
3. Of these, the fill with the fewest nodes whose mean number of overloaded nodes per period is at
   most the limit.
"""

import argparse
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Final

from algorithms.admission.strategies import Ari, Drf, DrfM, Par, Profile, Strategy
from algorithms.lab.admission.simulation import simulate
from algorithms.lab.admission.workloads import WORKLOADS, Workload, WorkloadSettings, draw

KINDS: Final[Mapping[str, type[Strategy]]] = {
    "PAR": Par, "ARI": Ari, "DRF": Drf, "DRF-M": DrfM, "profile": Profile,
}  # fmt: skip
CONSOLIDATED: Final = ("DRF", "DRF-M", "profile")
FILLS: Final = (1.0, 0.99, 0.98, 0.97, 0.96)
MEASURES: Final = ("nodes", "above_optimum", "overloaded", "redirections", "buffered")

# Per measure one value per seed.
Values = dict[str, list[float]]


def main() -> None:
    """Print the tables."""
    options = parse_options()
    drawn = {
        name: [
            draw(name, WorkloadSettings(steps=options.steps), seed) for seed in range(options.seeds)
        ]
        for name in WORKLOADS
    }
    print("without consolidation")
    for name, workloads in drawn.items():
        _compare_with_par(name, workloads)
    print("\nwith consolidation and forecast overload")
    fewest = [
        _fewest_nodes(name, label, workloads, options.limit)
        for name, workloads in drawn.items()
        for label in CONSOLIDATED
    ]
    print(f"\nfewest nodes with at most {options.limit:g} overloaded nodes per period")
    print("\n".join(fewest))


def _compare_with_par(name: str, workloads: Sequence[Workload]) -> None:
    most = 0.0
    for label, kind in KINDS.items():
        values = _measure(workloads, kind())
        redirections = mean(values["redirections"])
        most = most or redirections
        print(_line(name, label, values), f"{redirections / most:.4f} of PAR", flush=True)


def _fewest_nodes(name: str, label: str, workloads: Sequence[Workload], limit: float) -> str:
    """Print the measures at each fill; return the line with the fewest nodes within the limit."""
    best, fewest = f"{name:7} {label:8} none", float("inf")
    for fill in FILLS:
        strategy = KINDS[label](foresee=True, consolidate=True, fill=fill)
        values = _measure(workloads, strategy)
        line = _line(name, f"{label:8} fill {fill:.2f}", values)
        print(line, flush=True)
        if mean(values["overloaded"]) <= limit and mean(values["nodes"]) < fewest:
            best, fewest = line, mean(values["nodes"])
    return best


def _measure(workloads: Sequence[Workload], strategy: Strategy) -> Values:
    means = [
        simulate(workload, strategy, seed=seed).means() for seed, workload in enumerate(workloads)
    ]
    return {measure: [row[measure] for row in means] for measure in MEASURES}


def _line(name: str, label: str, values: Values) -> str:
    columns = (
        f"{measure} {mean(row):.3f} ({' '.join(f'{value:.3f}' for value in row)})"
        for measure, row in values.items()
    )
    return " | ".join((f"{name:7} {label:8}", *columns))


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=0.02)
    parser.add_argument("--steps", type=int, default=2_400, help="seconds of each simulation")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
