"""Query networks: operators with cost and selectivity on nodes with capacity (paper 003, 2, 3)."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple

from algorithms.errors import BadProblem
from algorithms.vocabulary import is_finite

MAX_OPERATORS: Final = 20_000
MAX_INPUTS: Final = 10_000
MAX_NODES: Final = 10_000
# Sums and products of a thousand of these stay finite.
MAX_NUMBER: Final = 1e12
ARROW: Final = "->"
# In place of the number of a drop site: every record is a result, no record is.
ALL: Final = -1
NOTHING: Final = -2


class OperatorKind(StrEnum):
    """What an operator does with its sources; a chain operator has one source."""

    CHAIN = "chain"
    UNION = "union"
    JOIN = "join"


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of the network.

    `cost`: units of the node's capacity per record that arrives; `selectivity`: records that leave
    per record that arrives, for a join per pair of records in its windows. `sources`: inputs or
    operators; `windows`: of a join, the records in the window of each source (section 3.3).
    """

    name: str
    node: str
    cost: float
    selectivity: float
    sources: tuple[str, ...]
    kind: OperatorKind = OperatorKind.CHAIN
    windows: tuple[float, ...] = ()

    @property
    def gains(self) -> tuple[float, ...]:
        """Return the records that leave per record of each source (equations 9 to 11)."""
        if self.kind is OperatorKind.JOIN:
            first, second = self.windows
            return (second * self.selectivity, first * self.selectivity)
        return (self.selectivity,) * len(self.sources)


class Edge(NamedTuple):
    """The records that go from an input or operator to an operator."""

    source: str
    target: str

    @property
    def name(self) -> str:
        """Return the name of the edge as a drop location."""
        return f"{self.source}{ARROW}{self.target}"


class DropSite(NamedTuple):
    """The split edges of an input or operator, which are drop locations.

    `places`: theirs in `Network.locations`. `behind`: of each edge, the number in
    `Network.drop_sites` of what splits its records next; `ALL` if they become results first, and
    `NOTHING` if they never do. `is_output`: whether the records of the operator are results.
    """

    places: tuple[int, ...]
    behind: tuple[int, ...]
    is_output: bool


@dataclass(frozen=True)
class Network:
    """A query network. Raises `BadProblem`, which names the faulty operator.

    `nodes`: the capacity of each; `outputs`: the weight of each operator whose records leave the
    network as results. `links`: the bandwidth between two nodes, in records per unit of time; a
    pair of nodes without a link has no limit. `floors`: the least part of the records of an output
    without overload that it must keep, if that is feasible. `covers`: operators that process each
    record of their source that one of some other operators gets from it, once: their flow is at
    least that of each. Only linear programs of ladders know them.

    Drop locations are the inputs, and the edges of inputs and operators whose records go to
    several places (section 3.2).
    """

    nodes: Mapping[str, float]
    inputs: tuple[str, ...]
    operators: tuple[Operator, ...]
    outputs: Mapping[str, float]
    links: Mapping[tuple[str, str], float] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    covers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_sizes(self)
        _check_numbers(self)
        _check_names(self)
        known = {*self.inputs, *self.by_name}
        for operator in self.operators:
            _check_operator(operator, self.nodes, known)
        _check_covers(self)
        self.order  # noqa: B018 - raises on a cycle

    @cached_property
    def by_name(self) -> Mapping[str, Operator]:
        """Return the operators by name."""
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[str, ...]]:
        """Return the operators that read each input and operator, in their order."""
        result: dict[str, list[str]] = {name: [] for name in (*self.inputs, *self.by_name)}
        for operator in self.operators:
            for source in operator.sources:
                result[source].append(operator.name)
        return {name: tuple(targets) for name, targets in result.items()}

    @cached_property
    def order(self) -> tuple[Operator, ...]:
        """Return the operators in an order in which sources are before their consumers."""
        graph = {
            operator.name: [name for name in operator.sources if name in self.by_name]
            for operator in self.operators
        }
        try:
            names = tuple(TopologicalSorter(graph).static_order())
        except CycleError as error:
            cycle = " -> ".join(error.args[1])
            where = f"operators.{error.args[1][0]}"
            raise BadProblem(where, f"is in a cycle: {cycle}") from error
        return tuple(self.by_name[name] for name in names)

    @cached_property
    def split_edges(self) -> tuple[Edge, ...]:
        """Return the edges that are drop locations: of what goes to several places."""
        return tuple(
            Edge(source, target)
            for source, targets in self.consumers.items()
            if len(targets) + (source in self.outputs) > 1
            for target in targets
        )

    @cached_property
    def locations(self) -> tuple[str, ...]:
        """Return the names of the drop locations: the inputs, then the split edges."""
        return (*self.inputs, *(edge.name for edge in self.split_edges))

    @cached_property
    def drop_sites(self) -> tuple[tuple[DropSite, ...], tuple[int, ...]]:
        """Return the drop sites, consumers before their sources, and what each input leads to.

        The second are numbers as in `DropSite.behind`.
        """
        place = {name: index for index, name in enumerate(self.locations)}
        sites: list[DropSite] = []
        number: dict[str, int] = {}
        for name in (*(operator.name for operator in reversed(self.order)), *self.inputs):
            targets, is_output = self.consumers[name], name in self.outputs
            if len(targets) + is_output > 1:
                places = tuple(place[Edge(name, target).name] for target in targets)
                behind = tuple(number[target] for target in targets)
                sites.append(DropSite(places, behind, is_output))
                number[name] = ALL if is_output else len(sites) - 1
            elif targets:
                number[name] = number[targets[0]]
            else:
                number[name] = ALL if is_output else NOTHING
        return tuple(sites), tuple(number[name] for name in self.inputs)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Return the names of nodes, then of links with a bandwidth, as `A->B`."""
        return (*self.nodes, *(ARROW.join(pair) for pair in self.links))


def _check_sizes(network: Network) -> None:
    bounds = (
        ("nodes", network.nodes, MAX_NODES),
        ("inputs", network.inputs, MAX_INPUTS),
        ("operators", network.operators, MAX_OPERATORS),
    )
    for name, items, most in bounds:
        if len(items) > most:
            raise BadProblem(name, f"must be at most {most:,}, not {len(items):,}")
    for name, items, _ in bounds:
        if not items:
            raise BadProblem(name, "must not be empty")


def _check_numbers(network: Network) -> None:
    for name, capacity in network.nodes.items():
        check_number(f"nodes.{name}", capacity, above_zero=True)
    for pair, bandwidth in network.links.items():
        where = f"links.{ARROW.join(pair)}"
        check_number(where, bandwidth, above_zero=True)
        if len(pair) != 2 or not set(pair) <= set(network.nodes):  # noqa: PLR2004 - two ends
            raise BadProblem(where, f"must name two nodes, joined by {ARROW}")
    _check_outputs(network)


def _check_outputs(network: Network) -> None:
    for what, values in (("outputs", network.outputs), ("floors", network.floors)):
        for name, value in values.items():
            if name not in network.by_name:
                raise BadProblem(f"{what}.{name}", "is not an operator")
            check_number(f"{what}.{name}", value)
    for name, value in network.floors.items():
        if name not in network.outputs or value > 1:
            raise BadProblem(f"floors.{name}", "must be a part, at most 1, of an output")


def _check_covers(network: Network) -> None:
    """Raise `BadProblem` unless operators that cover others read one source with them."""
    for name, covered in network.covers.items():
        where = f"covers.{name}"
        if name not in network.by_name or network.consumers[name] or name in network.outputs:
            raise BadProblem(where, "must be an operator whose results nothing reads")
        sources = network.by_name[name].sources
        for other in covered:
            if other not in network.by_name or not {*sources} <= {*network.by_name[other].sources}:
                raise BadProblem(where, f"must read what {other} reads")
        if len(sources) != 1 or not covered or name in covered:
            raise BadProblem(where, "must have one source and cover other operators")


def _check_names(network: Network) -> None:
    seen: set[str] = set()
    names = [("inputs", name) for name in network.inputs]
    for where, name in (*names, *(("operators", item.name) for item in network.operators)):
        if not isinstance(name, str) or not name or ARROW in name:
            raise BadProblem(where, f"needs names of text without {ARROW}, not {name!r}")
        if name in seen:
            raise BadProblem(f"{where}.{name}", "is the name of two inputs or operators")
        seen.add(name)


def _check_operator(operator: Operator, nodes: Container[str], known: Container[str]) -> None:
    where = f"operators.{operator.name}"
    if operator.node not in nodes:
        raise BadProblem(f"{where}.node", f"is unknown: {operator.node!r}")
    check_number(f"{where}.cost", operator.cost)
    check_number(f"{where}.selectivity", operator.selectivity)
    for source in operator.sources:
        if source not in known:
            raise BadProblem(f"{where}.from", f"names no input or operator: {source!r}")
    if len(set(operator.sources)) != len(operator.sources):
        raise BadProblem(f"{where}.from", "must name each source once")
    _check_kind(where, operator)


def _check_kind(where: str, operator: Operator) -> None:
    count, kind = len(operator.sources), operator.kind
    wanted = {OperatorKind.CHAIN: count == 1, OperatorKind.UNION: count > 0}
    if not wanted.get(kind, count == 2):  # noqa: PLR2004 - a join has two sources
        counts = {OperatorKind.CHAIN: "one source", OperatorKind.UNION: "at least one source"}
        raise BadProblem(f"{where}.from", f"must name {counts.get(kind, 'two sources')}")
    if kind is not OperatorKind.JOIN:
        if operator.windows:
            raise BadProblem(f"{where}.windows", "are for joins only")
        return
    if len(operator.windows) != 2:  # noqa: PLR2004 - one per source
        raise BadProblem(f"{where}.windows", "must have two numbers, one for each source")
    for window in operator.windows:
        check_number(f"{where}.windows", window)


def check_number(where: str, value: object, *, above_zero: bool = False) -> None:
    """Raise `BadProblem` unless the value is finite, not negative, and not missing."""
    if value is None:
        raise BadProblem(where, "is missing: it was not measured yet")
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        raise BadProblem(where, f"must be a finite number, not {value!r}")
    if value < 0 or (above_zero and value == 0) or value > MAX_NUMBER:
        least = "above 0" if above_zero else "at least 0"
        raise BadProblem(where, f"must be {least} and at most {MAX_NUMBER:g}, not {value:g}")
