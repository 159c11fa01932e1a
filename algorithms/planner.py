"""The interface of a planner: its algorithms and their parameters."""

from dataclasses import dataclass
from typing import Any

from algorithms.errors import UnknownAlgorithm
from algorithms.vocabulary import Kind, ParameterField, Parameters, Progress, silent


@dataclass(frozen=True)
class Algorithm:
    """One way to plan: its names, when it decides, its parameter class, which has `solve`.

    `problem`: the parameters of its problem where these are not the planner's.
    """

    name: str
    title: str
    kind: Kind
    parameters: type[Any]
    problem: type[Parameters] | None = None

    @property
    def summary(self) -> str:
        """The first line of the algorithm's documentation."""
        return (self.parameters.__doc__ or "").strip().splitlines()[0]

    def solve(self, problem: Any, parameters: Any = None, progress: Progress = silent) -> Any:
        """Run the algorithm; without parameters, with its defaults.

        `progress` is called with the share done; its exceptions stop the run. Raises what the
        algorithm's own `solve` raises, and `TypeError` on parameters of another algorithm.
        """
        chosen = self.parameters() if parameters is None else parameters
        if type(chosen) is not self.parameters:
            raise TypeError(f"{self.name} takes {self.parameters.__name__}, not {chosen!r}")
        return chosen.solve(problem, progress)


@dataclass(frozen=True)
class Planner:
    """One of Weir's planners, as forms, API and command line see it.

    `algorithms`: those that plan for running clusters. `problem`: parameters of the problem itself
    (a slack, a bound). `order`: lists have the planner with the least first.
    """

    name: str
    title: str
    algorithms: tuple[Algorithm, ...]
    problem: type[Parameters]
    order: int = 100

    def algorithm(self, name: str) -> Algorithm:
        """Return one algorithm. Raises `UnknownAlgorithm`, which names the known ones."""
        known = {item.name: item for item in self.algorithms}
        if name not in known:
            raise UnknownAlgorithm(self.name, name, tuple(known))
        return known[name]

    def problem_of(self, algorithm: Algorithm) -> type[Parameters]:
        """Return the parameters of an algorithm's problem."""
        return algorithm.problem or self.problem

    def fields(self, algorithm: Algorithm) -> tuple[ParameterField, ...]:
        """Return every parameter of a run: the problem's, then the algorithm's own."""
        shared = self.problem_of(algorithm).fields()
        names = {field.name for field in shared}
        own = algorithm.parameters.fields()
        return (*shared, *(field for field in own if field.name not in names))
