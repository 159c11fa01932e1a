"""The interface of a planner: its algorithms, and the JSON form of its problems and plans."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from algorithms.errors import BadParameters, UnknownAlgorithm
from algorithms.vocabulary import Kind, ParameterField, Parameters, Progress, silent


@dataclass(frozen=True)
class Algorithm:
    """One way to plan: its names, when it decides, its parameter class, which has `solve`.

    `read`, `report`: those of `Planner` if the form of its problems or plans is another.
    `plans_clusters`: whether it plans for running clusters, by default if it has no own `read`.
    """

    name: str
    title: str
    kind: Kind
    parameters: type[Any]
    read: Callable[[object, Any], Any] | None = field(default=None, kw_only=True)
    report: Callable[["Run"], dict[str, Any]] | None = field(default=None, kw_only=True)
    plans_clusters: bool | None = field(default=None, kw_only=True)

    @property
    def is_for_clusters(self) -> bool:
        """Return whether it plans for running clusters."""
        return self.read is None if self.plans_clusters is None else self.plans_clusters

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
class Run:
    """A plan with its problem and parameters."""

    problem: Any
    parameters: Any
    plan: Any


@dataclass(frozen=True)
class Planner:
    """One of Weir's planners, as forms, API, command line and benchmarks see it.

    `problem`: parameters of the problem itself, which its JSON leaves out (a slack, a bound).
    `read`: builds a problem from JSON-like values and those parameters; raises `BadProblem`.
    `report`: returns a run as JSON values. `order`: lists have the planner with the least
    first.
    """

    name: str
    title: str
    algorithms: tuple[Algorithm, ...]
    problem: type[Parameters]
    read: Callable[[object, Any], Any]
    report: Callable[[Run], dict[str, Any]]
    order: int = 100

    def algorithm(self, name: str) -> Algorithm:
        """Return one algorithm. Raises `UnknownAlgorithm`, which names the known ones."""
        known = {item.name: item for item in self.algorithms}
        if name not in known:
            raise UnknownAlgorithm(self.name, name, tuple(known))
        return known[name]

    def fields(self, algorithm: Algorithm) -> tuple[ParameterField, ...]:
        """Return every parameter of a run: the problem's, then the algorithm's own."""
        shared = self.problem.fields()
        names = {field.name for field in shared}
        own = algorithm.parameters.fields()
        return (*shared, *(field for field in own if field.name not in names))

    def run(
        self,
        algorithm: Algorithm,
        data: object,
        values: Mapping[str, Any],
        progress: Progress = silent,
    ) -> dict[str, Any]:
        """Read a problem, solve it and report the plan.

        `values`: parameters by name; one that problem and algorithm share goes to both, and one
        that the problem's JSON has as well overrules it there. Raises `PlanningError` of many
        kinds, each with the reason and the place.
        """
        problem, own = self.problem_and_parameters(algorithm, data, values)
        plan = algorithm.solve(problem, own, progress)
        return (algorithm.report or self.report)(Run(problem, own, plan))

    def problem_and_parameters(
        self, algorithm: Algorithm, data: object, values: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """Return the problem and the algorithm's parameters of a run, without running it."""
        names = [field.name for field in self.fields(algorithm)]
        data, values = self._split(algorithm, data, values)
        unknown = set(values) - set(names)
        if unknown:
            why = f"is not a parameter of {algorithm.name}; known: {', '.join(names) or 'none'}"
            raise BadParameters({name: [why] for name in sorted(unknown)})
        settings = _parameters_of(self.problem, values)
        problem = (algorithm.read or self.read)(data, settings)
        return problem, _parameters_of(algorithm.parameters, settings.to_mapping() | dict(values))

    def _split(
        self, algorithm: Algorithm, data: object, values: Mapping[str, Any]
    ) -> tuple[object, Mapping[str, Any]]:
        """Return the problem without its parameters, and all parameters.

        A problem in the algorithm's own form may have the algorithm's parameters, too.
        """
        if not isinstance(data, Mapping):
            return data, values
        fields = self.problem.fields() if algorithm.read is None else self.fields(algorithm)
        names = {field.name for field in fields}
        inside = {name: value for name, value in data.items() if name in names}
        return {k: v for k, v in data.items() if k not in names}, inside | dict(values)


def _parameters_of(kind: type[Any], values: Mapping[str, Any]) -> Any:
    names = {field.name for field in kind.fields()}
    return kind.from_mapping({name: to for name, to in values.items() if name in names})
