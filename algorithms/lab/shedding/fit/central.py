"""C-FIT: a coordinator computes the tables of all nodes, and looks plans up (sections 6, 7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from algorithms.lab.shedding.fit.leaf import Settings
from algorithms.lab.shedding.fit.local import LocalModel
from algorithms.lab.shedding.fit.node import (
    Summary,
    build_table,
    child_settings,
    root_settings,
    summarize,
)
from algorithms.lab.shedding.fit.quadtree import PointQuadtree
from algorithms.lab.shedding.fit.rules import RowRule, kept_rows
from algorithms.lab.shedding.fit.sampling import ROUNDING
from algorithms.lab.shedding.fit.table import RowPlans, Table, Weights
from algorithms.lab.shedding.fit.tree import ClusterTree
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import Network
from algorithms.shedding.problem import SheddingPlan, SheddingProblem
from algorithms.vocabulary import Floats, Parameters, Progress, parameter, silent

MIN_EPSILON: Final = 0.001
MAX_EPSILON: Final = 0.5


class Request(NamedTuple):
    """What a node is to process: a mixture of rows of its table, and rates without any drop."""

    weights: Weights
    whole: Floats


@dataclass(frozen=True, eq=False)
class NodeState:
    """A node with its table: the equations, the table with its plans, and the index of a root.

    `free` float64[d]: results per record kept at each drop location that need no resource.
    """

    local: LocalModel
    free: Floats
    table: Table
    plans: RowPlans
    index: PointQuadtree | None


@dataclass(frozen=True, eq=False)
class FitTables:
    """The tables of a network, and look-ups of plans in those of the roots.

    The results of a plan are at least 1 - epsilon of the optimum at the same rates, at any rates.
    """

    tree: ClusterTree
    nodes: Mapping[str, NodeState]

    @classmethod
    def of(cls, network: Network, epsilon: float, progress: Progress = silent,
           rule: RowRule = RowRule.NEEDED) -> "FitTables":  # fmt: skip
        """Return the tables of a network; `rule`: which rows the roots keep.

        Raises `BadProblem` if a network has floors, and `TooLarge` if tables become too large.
        """
        tree = ClusterTree.of(network)
        locals_ = {name: LocalModel.of(cluster) for name, cluster in tree.clusters.items()}
        summaries: dict[str, Summary] = {}
        for name, local in locals_.items():
            summaries[name] = summarize(local, _of_children(local, summaries))
        settings: dict[str, Settings] = {}
        for name, local in reversed(locals_.items()):
            if tree.clusters[name].parent is None:
                settings[name] = root_settings(
                    summaries[name], epsilon, outer=rule is RowRule.NEEDED
                )
            worths = {child: summaries[child].worth for child in local.cluster.outlets}
            settings.update(child_settings(local, worths, settings[name]))
        nodes: dict[str, NodeState] = {}
        for number, (name, local) in enumerate(locals_.items()):
            worths = {child: summaries[child].worth for child in local.cluster.outlets}
            tables = {child: nodes[child].table for child in local.cluster.outlets}
            table, plans = build_table(local, summaries[name], worths, settings[name], tables)
            is_root = local.cluster.parent is None
            # The safe rule was applied when the table was built.
            rows = None if rule is RowRule.NEEDED else kept_rows(table, rule)
            index = PointQuadtree.of(table, rows) if is_root else None
            free = local.free_values(local.outlet_values(worths)[1])
            nodes[name] = NodeState(local, free, table, plans, index)
            progress((number + 1) / len(locals_))
        return cls(tree, nodes)

    @property
    def rows(self) -> int:
        """Return the number of rows in the tables of the roots."""
        indexes = [self.nodes[name].index for name in self.tree.roots]
        return sum(len(index.rows) for index in indexes if index is not None)

    def lookup(self, rates: Floats) -> SheddingPlan:
        """Return a plan for any rates, float64[i], in the order of the inputs."""
        network = self.tree.network
        problem = SheddingProblem(network, dict(zip(network.inputs, rates.tolist(), strict=True)))
        # Equations do not depend on rates: all problems of the network share them.
        problem.__dict__["model"] = self._model
        return self.plan(problem)

    @cached_property
    def _model(self) -> FlowModel:
        return FlowModel.of(self.tree.network)

    def plan(self, problem: SheddingProblem) -> SheddingPlan:
        """Return a plan for the rates of a problem with the same network."""
        return assemble(self.tree, self.nodes, problem)


def _of_children(local: LocalModel, summaries: Mapping[str, Summary]) -> dict[str, Summary]:
    return {child: summaries[child] for child in local.cluster.outlets}


def assemble(
    tree: ClusterTree, nodes: Mapping[str, NodeState], problem: SheddingProblem
) -> SheddingPlan:
    """Return the plan of the nodes for a problem (section 7).

    Each root scales its rates down to the best row below them, unless they overload no node of its
    tree; then each node applies the plan of its row.
    """
    network, capacities = problem.network, problem.model.capacities
    unshed = problem.model.loads @ problem.model.unshed(problem.vector)
    if (unshed <= capacities * (1 + ROUNDING)).all():
        return SheddingPlan.of(problem, {})
    flows: dict[str, dict[str, float]] = {}
    for root in tree.roots:
        node = nodes[root]
        rates = np.array([problem.rates[name] for name in node.local.cluster.streams])
        request = Request({}, rates)
        if node.index is not None and _is_overloaded(nodes, root, rates):
            row = node.index.best(rates)
            # A row exists below all infeasible rates, but for rounding.
            request = Request({row: 1.0} if row >= 0 else {}, np.zeros(len(rates)))
        _collect(nodes, root, request, rates, flows)
    values = [
        max((flows[root][name] for root in tree.roots if name in flows[root]), default=0.0)
        for name in network.inputs
    ]
    for terms in tree.flow_terms:
        if terms is None:
            values.append(0.0)
        else:
            own = flows[terms[0]]
            values.append(sum(own[name] * factor for name, factor in terms[1].items()))
    return SheddingPlan.of_flows(problem, np.array(values))


def _is_overloaded(nodes: Mapping[str, NodeState], name: str, rates: Floats) -> bool:
    """Return whether a node of a subtree is overloaded if nothing is dropped."""
    local = nodes[name].local
    if (local.limits @ rates > 1 + ROUNDING).any():
        return True
    arriving = local.gains @ rates
    first = 0
    for child, pairs in local.cluster.outlets.items():
        if _is_overloaded(nodes, child, arriving[first : first + len(pairs)]):
            return True
        first += len(pairs)
    return False


def _collect(
    nodes: Mapping[str, NodeState],
    name: str,
    request: Request,
    rates: Floats,
    flows: dict[str, dict[str, float]],
) -> None:
    """Add the flows of a subtree that gets these rates and is to process a request."""
    node = nodes[name]
    local = node.local
    own, below = own_flows(node, request, rates)
    flows[name] = dict(zip(local.network.locations, own.tolist(), strict=True))
    arriving = local.at_outlets(own)
    first = 0
    for (child, pairs), more in zip(local.cluster.outlets.items(), below, strict=True):
        _collect(nodes, child, more, arriving[first : first + len(pairs)], flows)
        first += len(pairs)


def own_flows(node: NodeState, request: Request, rates: Floats) -> tuple[Floats, list[Request]]:
    """Return the flows of a node that gets these rates, float64[d], and requests to children."""
    local = node.local
    outlets = local.cluster.outlets
    flows = local.unshed @ request.whole
    mixtures: list[Weights] = [{} for _ in outlets]
    whole = np.split(local.gains @ request.whole, np.cumsum([len(p) for p in outlets.values()]))
    for row, weight in request.weights.items():
        own = weight * node.plans.flows(row)
        flows += own
        sent = np.split(local.at_outlets(own), np.cumsum([len(p) for p in outlets.values()]))
        for place, more in enumerate(node.plans.children(row)):
            if more is None:
                whole[place] = whole[place] + sent[place]
                continue
            for other, share in more.items():
                mixtures[place][other] = mixtures[place].get(other, 0.0) + weight * share
    # What needs no resource is kept at any rate.
    flows += local.free_flows(node.free, rates - flows[: len(rates)])
    return flows, [Request(*item) for item in zip(mixtures, whole, strict=False)]


@dataclass(frozen=True)
class FitPlan(SheddingPlan):
    """A plan out of feasible input tables; `rows`: of the tables of the roots."""

    rows: int = 0

    @classmethod
    def with_rows(cls, plan: SheddingPlan, rows: int) -> "FitPlan":
        """Return a plan with the number of rows."""
        return cls(plan.keep, plan.outcome, rows)


def epsilon_parameter() -> Any:
    """Return the field of the error of plans."""
    return parameter(
        0.05,
        title="Largest allowed error",
        letter="epsilon",
        unit="share",
        help="The part of the optimal results that a plan may lose; tables grow with its inverse.",
        minimum=MIN_EPSILON,
        maximum=MAX_EPSILON,
    )


@dataclass(frozen=True)
class CFit(Parameters):
    """Feasible input tables of all nodes, computed by a coordinator (section 6)."""

    epsilon: float = epsilon_parameter()
    rule: str = parameter(
        RowRule.NEEDED.value,
        title="Rows of the tables",
        help="Rows that tables keep: with pareto or triangle, plans may lose more than the largest "
        "allowed error.",
        choices=tuple(RowRule),
    )

    def solve(self, problem: SheddingProblem, progress: Progress = silent) -> FitPlan:
        """Return the plan that the tables have for the rates. Raises `BadProblem`, `TooLarge`."""
        tables = FitTables.of(problem.network, self.epsilon, progress, RowRule(self.rule))
        return FitPlan.with_rows(tables.plan(problem), tables.rows)
