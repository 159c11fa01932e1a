"""Estimates of computations against what they need: memory and time of every planner.

    python -m benchmarks.availability.estimates [--queries N ...] [--planners NAME ...]

Each algorithm plans for a cluster of so many queries in a child process, as a proposal is
computed. The command prints, per algorithm, the most memory beyond that of the parent and the time,
beside the estimate, and ends with code 1 if an estimate of memory is below the measured value. The
time includes the compilation of the first run.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from algorithms.estimates import MB, Estimate, ProblemSize, total
from benchmarks.planners.shedding_speed import cluster_snapshot
from controlplane.planners.shedding.inputs import SheddingInput

# A tenth of the queries reads further streams.
_STREAMS_PER_QUERY: Final = 0.05
_NODES: Final = 20
# The slack and the rate of a cluster's parameters by default.
_DEFAULTS: Final = SimpleNamespace(nu=0.2, alpha=10.0)


@dataclass(frozen=True)
class Need:
    """What an algorithm needed, beside the estimate; `refusal`: why there is no plan, "" else."""

    planner: str
    algorithm: str
    queries: int
    estimate: Estimate
    measured: Estimate
    refusal: str = ""

    @property
    def is_bound(self) -> bool:
        """Return whether the estimate of memory is an upper bound."""
        return self.measured.bytes <= self.estimate.bytes

    def line(self) -> str:
        """Return the figures as a line."""
        return (
            f"{self.planner + ' ' + self.algorithm:30s} {self.queries:8,} queries  "
            f"{self.measured.bytes / MB:8,.0f} of {self.estimate.bytes / MB:8,.0f} MB  "
            f"{self.measured.seconds:8.1f} of {self.estimate.seconds:8.1f} s"
            f"{'' if self.is_bound else '  BELOW'}{f'  ({self.refusal})' if self.refusal else ''}"
        )


def measured_needs(queries: int, names: Sequence[str]) -> Iterator[Need]:
    """Yield the needs of all algorithms of the named planners (without names: of all)."""
    streams = max(4, round(queries * _STREAMS_PER_QUERY))
    snapshot = cluster_snapshot(queries, streams, _NODES, None)
    from controlplane.planning.adapters import adapters  # noqa: PLC0415 - needs Django

    readings = sum(len(query.streams) for query in snapshot.input(SheddingInput).queries)
    size = ProblemSize(queries, readings, streams, _NODES)
    for adapter in adapters().values():
        if not names or adapter.name in names:
            for algorithm in adapter.algorithms:
                yield _need(adapter, algorithm, snapshot, size)


def _need(adapter: Any, algorithm: Any, snapshot: Any, size: ProblemSize) -> Need:
    from algorithms.errors import PlanningError  # noqa: PLC0415 - with the others
    from controlplane.child_processes.confinement import Limits  # noqa: PLC0415 - needs Django
    from controlplane.errors import WeirError  # noqa: PLC0415 - needs Django
    from controlplane.planning.adapter import PlanRequest  # noqa: PLC0415 - needs Django
    from controlplane.processes.isolation.child import run_in_child  # noqa: PLC0415 - needs Django

    parameters = adapter.checked(algorithm, {}, _DEFAULTS)
    own = algorithm.parameters.from_mapping(
        {field.name: parameters[field.name] for field in algorithm.parameters.fields()}
    )

    def plan(progress: Callable[[float], None]) -> str:
        try:
            adapter.plan(PlanRequest(snapshot, algorithm, own, parameters, progress))
        except (PlanningError, WeirError) as refused:
            return f"{type(refused).__name__}: {str(refused)[:60]}"
        return ""

    bytes_, seconds, refusal = run_in_child(
        lambda progress: _observed(lambda: plan(progress)), Limits(16 * 1024 * MB, 3600.0)
    )
    need = total([own.estimate(size)])
    measured = Estimate(bytes_, seconds)
    return Need(adapter.name, algorithm.name, size.queries, need, measured, refusal)


def _observed(run: Callable[[], str]) -> tuple[float, float, str]:
    from controlplane.child_processes.confinement import peak_bytes, resident_bytes  # noqa: PLC0415

    before, started = resident_bytes(), time.monotonic()
    refusal = run()
    return max(0.0, peak_bytes() - before), time.monotonic() - started, refusal


def main() -> None:
    """Print the needs; end with code 1 if an estimate is not a bound."""
    options = parse_options()
    bounds = True
    for queries in options.queries:
        for need in measured_needs(queries, options.planners):
            print(need.line(), flush=True)
            bounds = bounds and need.is_bound
    sys.exit(0 if bounds else 1)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--planners", nargs="*", default=[], help="all by default")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
