"""Estimates bound what computations need, and every experiment of the papers is within reach."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from algorithms.estimates import MB, ProblemSize
from algorithms.lab.experiments import EXPERIMENTS, experiment
from algorithms.lab.registry import PLANNERS
from algorithms.reductions import reducible

# An estimate is at most so many times the memory that a computation needs.
FACTOR: Final = 10.0
# The limits of the Lab by default.
LAB_BYTES: Final = 4096 * MB
LAB_S: Final = 24 * 3600.0


def peak_bytes(planner: str, name: str, given: Mapping[str, Any], x: float, series: str) -> int:
    """Return the memory that a run needs beyond that of this process, measured in a child."""
    chosen = experiment(planner, name)
    parameters = chosen.parameters.from_mapping(given)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            Path("/proc/self/clear_refs").write_text("5")
            before = _status("VmRSS")
            chosen.run(parameters, [x], [series])
            os.write(writer, str(_status("VmHWM") - before).encode())
        finally:
            os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    assert status == 0
    return int(os.read(reader, 30) or b"0")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


@pytest.mark.parametrize(
    ("planner", "name", "given", "x", "series"),
    [
        ("placement", "fig3a", {"queries": 100_000, "sources_per_query": 8}, 2.0, "off_rand"),
        ("placement", "fig3a", {"queries": 100_000, "servers": 500}, 2.0, "mms"),
        ("placement", "fig5a", {"steps": 50_000, "arrivals": 5.0}, 2.0, "least_cost"),
        ("partitioning", "fig11", {"messages": 1_000_000}, 1, "key"),
        ("partitioning", "relocations", {"messages": 300_000}, 8, "key"),
        ("migration", "fig9", {"migrations": 5, "tasks": 512}, 1.2, "storm"),
        ("admission", "levels", {"duration_s": 300}, 4.0, "par"),
    ],
)
def test_an_estimate_bounds_the_memory_within_a_factor(
    planner: str, name: str, given: dict[str, Any], x: float, series: str
) -> None:
    """Measured in a process of its own, so nothing else of the suite counts."""
    one = {"seeds": 1, **given}
    chosen = experiment(planner, name)
    need = chosen.estimate(chosen.parameters.from_mapping(one), [x], [series])
    measured = peak_bytes(planner, name, one, x, series)
    assert 0 < measured <= need.bytes
    # What every computation loads is not part of the parameters' share.
    assert need.bytes <= FACTOR * max(measured, 64 * MB)


def test_every_experiment_of_the_papers_is_within_the_limits() -> None:
    """As the form has it: all values, series and seeds by default."""
    for experiments in EXPERIMENTS.values():
        for chosen in experiments:
            need = chosen.estimate(chosen.parameters())
            assert need.bytes > 0, chosen.name
            assert not need.exceeds(LAB_BYTES, LAB_S), (chosen.planner, chosen.name, need)


def test_every_algorithm_has_an_estimate_that_grows_with_the_cluster() -> None:
    """By default they plan for ten thousand queries within the limits of a proposal."""
    small, large = ProblemSize(10, 20, 5, 3), ProblemSize(10_000, 30_000, 500, 100)
    for planner in PLANNERS:
        for algorithm in planner.algorithms:
            parameters = algorithm.parameters()
            low, high = parameters.estimate(small), parameters.estimate(large)
            assert low.bytes < high.bytes, (planner.name, algorithm.name)
            assert low.seconds < high.seconds, (planner.name, algorithm.name)


def test_the_parameters_to_reduce_are_those_that_need_most() -> None:
    """The request that ended a machine: a thousand million queries."""
    chosen = experiment("placement", "fig3a")
    given = chosen.parameters().to_mapping() | {"queries": 10_000_000, "sources_per_query": 100}

    def estimate(values: Mapping[str, Any]) -> Any:
        return chosen.estimate(chosen.parameters.from_mapping(values), [2.0], ["mms"])

    assert estimate(given).exceeds(LAB_BYTES, LAB_S)
    names = reducible(chosen.parameters.fields(), given, estimate)
    assert names[0] == "queries"
    assert set(names) <= {"queries", "sources_per_query", "servers", "seeds"}
