from dataclasses import dataclass
from typing import Any

import pytest

from algorithms.errors import BadParameters, UnknownAlgorithm
from algorithms.lab.planner import JsonPlanner, Run
from algorithms.planner import Algorithm
from algorithms.vocabulary import Parameters, Progress, parameter


@dataclass(frozen=True)
class Bound(Parameters):
    limit: float = parameter(1.0, help="The problem's own parameter.", minimum=0.0, maximum=1e3)


@dataclass(frozen=True)
class Adding(Parameters):
    """Adds up what it is given, within the limit."""

    step: int = parameter(1, help="What is added to each.", minimum=-100, maximum=100)

    def solve(self, problem: Any, progress: Progress | None = None) -> float:
        numbers, limit = problem
        if progress is not None:
            progress(1.0)
        return float(min(limit, sum(number + self.step for number in numbers)))


@dataclass(frozen=True)
class Sharing(Adding):
    """Knows the limit itself, as an online algorithm does."""

    limit: float = parameter(1.0, help="The same as the problem's.", minimum=0.0, maximum=1e3)

    def solve(self, problem: Any, progress: Progress | None = None) -> float:
        return self.limit


ADDING, SHARING = (
    Algorithm("adding", "Adding", "offline", Adding),
    Algorithm("sharing", "Sharing", "online", Sharing),
)


def read(data: Any, bound: Any) -> Any:
    return data["numbers"], bound.limit


def report(run: Run) -> dict[str, Any]:
    return {"sum": run.plan, "of": run.problem, "step": run.parameters.step}


PLANNER = JsonPlanner("sums", "Sums", (ADDING, SHARING), Bound, read=read, report=report)


def test_a_run_reads_solves_and_reports() -> None:
    assert PLANNER.run(ADDING, {"numbers": [1, 2]}, {"limit": 9, "step": 2}) == {
        "sum": 7,
        "of": ([1, 2], 9.0),
        "step": 2,
    }


def test_parameters_of_the_problem_may_stand_in_its_json() -> None:
    assert PLANNER.run(ADDING, {"numbers": [1, 2], "limit": 2}, {})["sum"] == 2
    assert PLANNER.run(ADDING, {"numbers": [1, 2], "limit": 2}, {"limit": 3})["sum"] == 3


def test_what_problem_and_algorithm_share_goes_to_both() -> None:
    """Wherever it was said."""
    assert PLANNER.run(SHARING, {"numbers": []}, {"limit": 4})["sum"] == 4
    assert PLANNER.run(SHARING, {"numbers": [], "limit": 5}, {})["sum"] == 5


def test_shared_parameters_are_shown_once() -> None:
    assert [field.name for field in PLANNER.fields(SHARING)] == ["limit", "step"]


def test_unknown_parameters_are_refused_with_those_there_are() -> None:
    with pytest.raises(BadParameters, match="not a parameter of adding; known: limit, step"):
        PLANNER.run(ADDING, {"numbers": []}, {"stride": 1})


def test_a_bad_parameter_of_the_problem_is_refused_by_name() -> None:
    with pytest.raises(BadParameters) as caught:
        PLANNER.run(ADDING, {"numbers": [], "limit": -1}, {})
    assert list(caught.value.fields) == ["limit"]


def test_progress_reaches_the_algorithm() -> None:
    told: list[float] = []
    PLANNER.run(ADDING, {"numbers": [1]}, {}, told.append)
    assert told == [1.0]


def test_algorithms_are_found_by_name() -> None:
    assert PLANNER.algorithm("sharing") is SHARING
    with pytest.raises(UnknownAlgorithm, match="known: adding, sharing"):
        PLANNER.algorithm("subtracting")


def test_parameters_of_another_algorithm_are_refused() -> None:
    with pytest.raises(TypeError, match="Adding"):
        ADDING.solve(([], 1.0), Bound())


def test_the_first_line_of_the_documentation_is_the_summary() -> None:
    assert ADDING.summary == "Adds up what it is given, within the limit."
