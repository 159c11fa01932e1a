"""Planners that read problems as JSON and report plans as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from algorithms.errors import BadParameters
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import Progress, silent


@dataclass(frozen=True)
class Run:
    """A plan with its problem and parameters."""

    problem: Any
    parameters: Any
    plan: Any


Read = Callable[[object, Any], Any]
Report = Callable[[Run], dict[str, Any]]


@dataclass(frozen=True)
class JsonPlanner(Planner):
    """A planner with the JSON form of its problems and plans.

    `read`: builds a problem from JSON-like values and the parameters of the problem, which its JSON
    leaves out; raises `BadProblem`. `report`: returns a run as JSON values. `reads`, `reports`:
    those of the algorithms, by name, whose problems or plans have another form.
    """

    read: Read = field(kw_only=True)
    report: Report = field(kw_only=True)
    reads: Mapping[str, Read] = field(default_factory=dict, kw_only=True)
    reports: Mapping[str, Report] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(
        cls,
        planner: Planner,
        added: tuple[Algorithm, ...] = (),
        *,
        read: Read,
        report: Report,
        reads: Mapping[str, Read] | None = None,
        reports: Mapping[str, Report] | None = None,
    ) -> Self:
        """Return a planner of running clusters with the algorithms that the Lab adds to it."""
        return cls(
            planner.name,
            planner.title,
            (*planner.algorithms, *added),
            planner.problem,
            planner.order,
            read=read,
            report=report,
            reads=reads or {},
            reports=reports or {},
        )

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
        return self.reports.get(algorithm.name, self.report)(Run(problem, own, plan))

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
        problem = self.reads.get(algorithm.name, self.read)(data, settings)
        return problem, _parameters_of(algorithm.parameters, settings.to_mapping() | dict(values))

    def _split(
        self, algorithm: Algorithm, data: object, values: Mapping[str, Any]
    ) -> tuple[object, Mapping[str, Any]]:
        """Return the problem without its parameters, and all parameters.

        A problem in the algorithm's own form may have the algorithm's parameters, too.
        """
        if not isinstance(data, Mapping):
            return data, values
        has_own = algorithm.name in self.reads
        fields = self.fields(algorithm) if has_own else self.problem.fields()
        names = {field.name for field in fields}
        inside = {name: value for name, value in data.items() if name in names}
        return {k: v for k, v in data.items() if k not in names}, inside | dict(values)


def _parameters_of(kind: type[Any], values: Mapping[str, Any]) -> Any:
    names = {field.name for field in kind.fields()}
    return kind.from_mapping({name: to for name, to in values.items() if name in names})
