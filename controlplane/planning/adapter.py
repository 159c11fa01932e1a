"""Adapters connect planners to clusters: one value per planner."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from algorithms.errors import BadParameters, UnknownAlgorithm
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import ParameterField
from controlplane.errors import Invalid
from controlplane.planning.measures import Measure
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.actions import Action

Progress = Callable[[float], None]


class Defaults(Protocol):
    """The source of default parameters: a cluster, or a cluster description."""

    nu: float
    alpha: float


@dataclass(frozen=True)
class PlannerResult:
    """The actions of a planner, and lower bounds by measure."""

    actions: Sequence[Action]
    bounds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanRequest:
    """A request to a planner: algorithm, its parameters, all parameters, and a snapshot.

    `progress` receives the finished share.
    """

    snapshot: ClusterSnapshot
    algorithm: Algorithm
    own: Any
    parameters: Mapping[str, Any]
    progress: Progress


@dataclass(frozen=True)
class Missing:
    """What a cluster lacks for a plan: a stable code, and a sentence with what to do."""

    code: str
    text: str


@dataclass(frozen=True)
class WatchSupport:
    """The watch loops that a planner serves; the planner with the lowest `order` is first.

    `parameters`: those of a plan, for the loop that requests it and its limit.
    """

    loops: frozenset[str]
    order: int
    parameters: Callable[[str, float], Mapping[str, Any]] = lambda _loop, _limit: {}


@dataclass(frozen=True)
class PlannerAdapter:
    """The connection of a planner to clusters.

    `default`: the algorithm of a request without one. `plan`: computes actions for a snapshot;
    raises `Conflict` if there is nothing to plan, and the errors of the algorithm. `defaults`:
    parameters with a default that depends on the cluster. `measures`: the planner's own measures,
    besides the common ones. `improves`: the measures that define the gain of a plan. `moves_state`:
    True if its actions move state. `places`: True if it also places queries without a node.
    `effect`: a noun for its plans; `hint`: a sentence for the form. `compared`: the number of its
    algorithms in a comparison by default. `changes_queries`: whether its actions change queries, so
    that people approve its plans by default. `decided_by_people`: the algorithms whose plans no
    policy approves automatically. `slacks`: the parameters that give plans more room as they rise.
    """

    planner: Planner
    default: str
    effect: str
    hint: str
    plan: Callable[[PlanRequest], PlannerResult]
    improves: tuple[str, ...]
    defaults: Mapping[str, Callable[[Defaults], Any]] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    moves_state: bool = False
    places: bool = False
    compared: int = 1
    changes_queries: bool = False
    decided_by_people: frozenset[str] = frozenset()
    watch: WatchSupport | None = None
    slacks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the planner."""
        return self.planner.name

    @property
    def is_automatic(self) -> bool:
        """Return whether policies approve its plans by default."""
        return not self.moves_state and not self.changes_queries

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """Return the algorithms of the planner, the best one first."""
        return self.planner.algorithms

    def algorithm(self, name: str) -> Algorithm:
        """Return an algorithm, the default for "". Raises `Invalid`."""
        try:
            return self.planner.algorithm(name or self.default)
        except UnknownAlgorithm as unknown:
            raise Invalid({"algorithm": [str(unknown)]}) from None

    def fields(self, chosen: Algorithm, cluster: Defaults) -> tuple[ParameterField, ...]:
        """Return the parameters of a plan, the problem's first, with the cluster's defaults."""
        return tuple(
            replace(field, default=self.defaults[field.name](cluster))
            if field.name in self.defaults
            else field
            for field in self.planner.fields(chosen)
        )

    def checked(
        self, chosen: Algorithm, given: Mapping[str, Any], cluster: Defaults
    ) -> dict[str, Any]:
        """Return all parameters of a plan by name. Raises `Invalid` by name."""
        values = {field.name: field.default for field in self.fields(chosen, cluster)} | dict(given)
        kind = self.planner.problem_of(chosen)
        problem = {field.name for field in kind.fields()}
        own = {field.name for field in chosen.parameters.fields()}
        parts = (
            (kind, {n: v for n, v in values.items() if n in problem}),
            (chosen.parameters, {n: v for n, v in values.items() if n in own or n not in problem}),
        )
        result: dict[str, Any] = {}
        faults: dict[str, list[str]] = {}
        for parameters, part in parts:
            try:
                result |= parameters.from_mapping(part).to_mapping()
            except BadParameters as bad:
                faults |= {name: list(messages) for name, messages in bad.fields.items()}
        if faults:
            raise Invalid(faults)
        return result

    def plan_for(
        self,
        algorithm: str,
        parameters: Mapping[str, Any],
        snapshot: ClusterSnapshot,
        progress: Progress,
    ) -> PlannerResult:
        """Return a plan of an algorithm, by its name, for a snapshot with checked parameters.

        Raises `Invalid` for an unknown algorithm, and the errors of `plan`.
        """
        chosen = self.algorithm(algorithm)
        names = {field.name for field in chosen.parameters.fields()}
        own = chosen.parameters.from_mapping({n: v for n, v in parameters.items() if n in names})
        return self.plan(PlanRequest(snapshot, chosen, own, parameters, progress))
