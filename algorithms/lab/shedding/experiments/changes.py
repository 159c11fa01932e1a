"""Figure 15: what a node of D-FIT sends to its parent, at first and after changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.errors import TooLarge
from algorithms.estimates import MB, Estimate
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel, Repeated
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.lab.shedding.experiments.networks import (
    CHILD,
    CROSSED,
    LAYOUTS,
    chains,
    with_moved_load,
    with_selectivity,
    with_split,
)
from algorithms.lab.shedding.experiments.setup import PERCENT, larger_cost, smaller_cost
from algorithms.lab.shedding.fit.central import MAX_EPSILON, FitTables, NodeState
from algorithms.lab.shedding.fit.distributed import DistributedTables
from algorithms.lab.shedding.fit.quadtree import PointQuadtree
from algorithms.lab.shedding.fit.rules import RowRule
from algorithms.lab.shedding.fit.sampling import ROUNDING
from algorithms.lab.shedding.fit.table import Delta, Table
from algorithms.shedding.network import Network
from algorithms.shedding.planner import SHEDDING
from algorithms.vocabulary import Flags, Floats, Progress, parameter

ROWS: Final = Axis("rows", "Rows that the child sends", log=True)
BYTES: Final = Axis("bytes", "Bytes of these rows", "bytes", log=True)
SELECTIVITIES: Final = (0.9, 0.7, 0.5, 0.3)
MOVED_MS: Final = (4.0, 8.0, 16.0, 24.0)
_SPLIT: Final = "split"


@dataclass(frozen=True)
class Sent(Repeated):
    """Two crossed chains, of which the parent node receives a table of the child node."""

    seeds: int = parameter(
        1, help="Nothing is random, so all seeds have equal results.", minimum=1, maximum=10
    )
    epsilon: float = parameter(
        0.05,
        title="Largest allowed error",
        letter="epsilon",
        help="The largest error of plans.",
        minimum=0.005,
        maximum=MAX_EPSILON,
    )
    larger_ms: float = larger_cost()
    smaller_ms: float = smaller_cost()
    layout: str = parameter(
        CROSSED, choices=LAYOUTS,
        help="crossed: each chain has the larger cost on another node; parallel: one chain has it "
        "on both nodes.",
    )  # fmt: skip

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one table, whose rows grow with the inverse of the error."""
        del series
        rows = 4.0 / self.epsilon**2
        return Estimate(50 * MB + 2_000.0 * rows, 20.0 + 1e-3 * rows)

    def network(self) -> Network:
        """Return the chains before any change."""
        return chains(self.larger_ms, self.smaller_ms, 2, self.layout)


# Of the load: parts of all costs, and a child node that has splits.
_LOADS: Final = {"load_100": 1.0, "load_50": 0.5, "load_25": 0.25, "load_12.5": 0.125}
_LOAD_TITLES: Final = {
    **{name: f"Load {PERCENT * part:g} %" for name, part in _LOADS.items()},
    _SPLIT: "Load split among nodes",
}


def measure_sizes(
    parameters: Sent, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the size of the child's table for each load."""
    for number, name in enumerate(series):
        report(number / len(series))
        network = _loaded(parameters, name)
        try:
            nodes = DistributedTables(network, parameters.epsilon)
        except TooLarge:
            yield name, dict.fromkeys(_SIZES, float("nan"))
            continue
        cuts = len(_cuts(network)) if name != _SPLIT else float("nan")
        yield (
            name,
            {
                ROWS.name: nodes.states[CHILD].table.size,
                BYTES.name: nodes.traffic.bytes,
                "cuts": cuts,
            },
        )


def _loaded(parameters: Sent, name: str) -> Network:
    if name == _SPLIT:
        return with_split(parameters.network(), CHILD)
    part = _LOADS[name]
    return chains(part * parameters.larger_ms, part * parameters.smaller_ms, 2, parameters.layout)


@dataclass(frozen=True)
class Tolerated(Sent):
    """A tolerated difference of results after a change."""

    tolerance: float = parameter(
        0.05,
        title="Tolerated difference of results",
        unit="share",
        help="Tolerated difference of results.",
        minimum=0.0,
        maximum=0.9,
    )
    epsilon: float = parameter(
        0.05,
        title="Largest allowed error",
        letter="epsilon",
        help="The largest error of plans.",
        minimum=0.02,
        maximum=MAX_EPSILON,
    )
    rule: str = parameter(
        RowRule.NEEDED.value, title="Rows of the tables", choices=(RowRule.NEEDED, RowRule.ALL),
        help="Rows of tables: needed leaves out those that the guarantee does not need, all keeps "
        "them.",
    )  # fmt: skip

    def child(self, network: Network) -> NodeState:
        """Return the child node with its table. Raises `TooLarge`."""
        return FitTables.of(network, self.epsilon, rule=RowRule(self.rule)).nodes[CHILD]


@dataclass(frozen=True)
class ByMovement(Tolerated):
    """The same with costs that a movement of 24 ms reverses."""

    larger_ms: float = larger_cost(default=60.0, least=24.0)
    smaller_ms: float = smaller_cost(default=36.0, least=24.0)


def measure_changes(
    parameters: Tolerated, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield what the child has to send after each change, in percent of its new table."""
    before, tolerance = parameters.network(), parameters.tolerance
    known = parameters.child(before).table
    for number, name in enumerate(series):
        report(number / len(series))
        after = _after(before, name)
        child = parameters.child(after)
        size = child.table.size
        delta = Delta.between(known, child.table)
        needed = len(lacking_rows(known, child, tolerance))
        measures = {
            "needed": _percent(needed, size),
            "needed_rows": needed,
            "delta": _percent(delta.rows.size + len(delta.removed), size),
            "rows": size,
            "changed_cuts": changed_cuts(_cuts(before), _cuts(after), tolerance),
        }
        yield name, measures


def lacking_rows(known: Table, child: NodeState, tolerance: float) -> list[int]:
    """Return the rows of a node without splits that a parent with a known table lacks.

    The parent drops rows that became infeasible, and computes the scores of the others again. It
    lacks a row if each known row below it yields less than 1 - tolerance of its results.
    """
    loads = known.rates @ child.local.limits.T
    rates = known.rates[(loads <= 1 + ROUNDING).all(axis=1)]
    scores = rates @ child.local.worth({}).values
    index = PointQuadtree.of(Table(rates, scores, np.ones(len(rates), np.bool_)))
    best = [index.best(upper) for upper in child.table.rates]
    given = np.array([scores[row] if row >= 0 else 0.0 for row in best])
    return np.flatnonzero(given < (1 - tolerance) * child.table.scores - ROUNDING).tolist()


def changed_cuts(known: Floats, cuts: Floats, tolerance: float) -> float:
    """Return how many cuts of the exact planner differ from all known ones, in percent.

    `known`, `cuts` float64[k, 1 + i]: constants and slopes; a cut is known if all of its numbers
    are within the tolerance of those of a known cut.
    """
    apart = np.abs(cuts[:, None, :] - known[None, :, :])
    differs: Flags = apart > tolerance * np.abs(cuts)[:, None, :]
    is_new = np.all(np.any(differs, axis=2), axis=1)
    return _percent(int(np.count_nonzero(is_new)), len(cuts))


def _cuts(network: Network) -> Floats:
    """Return all cuts of chains over two nodes, float64[k, 1 + i]."""
    (part,) = ExactPlanner(network).parts
    cuts = part.cuts()
    return np.column_stack([cuts.constant, cuts.slope])


def _percent(count: float, total: int) -> float:
    return PERCENT * count / max(1, total)


def _after(network: Network, change: str) -> Network:
    if change in _BY_SELECTIVITY:
        return with_selectivity(network, _BY_SELECTIVITY[change][0], _BY_SELECTIVITY[change][1])
    return with_moved_load(network, "p1", "c1", _BY_MOVEMENT[change])


_BY_SELECTIVITY: Final = {
    f"{where}_selectivity_{value:g}": (operator, value)
    for where, operator in (("child", "c1"), ("parent", "p1"))
    for value in SELECTIVITIES
}
_BY_MOVEMENT: Final = {f"parent_to_child_{moved:g}": moved for moved in MOVED_MS}
_CHANGE_TITLES: Final = {
    **{f"{where}_selectivity_{value:g}": f"{where.capitalize()}, selectivity {value:g}"
       for where in ("child", "parent") for value in SELECTIVITIES},
    **{name: f"{moved:g} ms from parent to child" for name, moved in _BY_MOVEMENT.items()},
}  # fmt: skip
_SIZES: Final = (ROWS.name, BYTES.name, "cuts")
_CHANGES: Final = ("needed", "needed_rows", "delta", "rows", "changed_cuts")
_CHANGE_PANELS: Final = (
    Panel("Part of the rows to send", Axis("needed", "Part of the rows to send", "%")),
    Panel("Rows to send", Axis("needed_rows", "Rows to send")),
    Panel("Changed cuts", Axis("changed_cuts", "Changed cuts of the exact planner", "%")),
)
_SIZE_AXES: Final = (Axis("cuts", "Cuts of the exact planner"),)
_CHANGE_AXES: Final = (
    Axis("delta", "Part of the rows that D-FIT sends", "%"),
    Axis("rows", "Rows of the child's table"),
)
_CHANGE_TEXT: Final = (
    "“Part of the rows to send” is that of the new table of the child. The parent drops known rows "
    "that became infeasible, and knows the new results per record from the child's summary; it "
    "lacks a row if each known row below it yields less than the tolerated part of its results. "
    "“Part of the rows that D-FIT sends” has the numbers of removed rows, too; D-FIT tolerates no "
    "difference. “Changed cuts of the exact planner”, beyond the paper, differ from all before by "
    "more than the tolerance."
)


FIG15A: Final = Experiment(
    planner=SHEDDING,
    name="fig15a",
    title="Rows of D-FIT by error and load",
    about="Paper 003, section 8.2.5, figure 15(a): the rows that the child sends to its parent, by "
    "the largest error, for all costs of the chains and parts of them. split: on the child node, "
    "each operator is replaced by a shared one and two branches with results of their own, of an "
    "eighth, two and five eighths of its cost, as in figure 7; the paper does not state it. "
    "“Cuts of the exact planner”, beyond the paper, do not depend on an error.",
    x=Axis("epsilon", "Largest allowed error", log=True),
    panels=(Panel("Rows", ROWS), Panel("Bytes", BYTES)),
    parameters=Sent,
    values=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    series=(*_LOADS, _SPLIT),
    choices=(*_LOADS, _SPLIT),
    series_titles=_LOAD_TITLES,
    measures=_SIZES,
    axes=_SIZE_AXES,
    trial=measure_sizes,
)
FIG15B: Final = Experiment(
    planner=SHEDDING,
    name="fig15b",
    title="Rows to send after a change of selectivity",
    about="Paper 003, section 8.2.5, figure 15(b): the selectivity of one operator falls from 1. "
    "The paper does not state which operator; child is the last one of a chain, whose selectivity "
    f"changes results only, parent is the one before it. {_CHANGE_TEXT}",
    x=Axis("tolerance", "Tolerated difference of results"),
    panels=_CHANGE_PANELS,
    parameters=Tolerated,
    values=(0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3),
    series=tuple(name for name in _BY_SELECTIVITY if name.startswith("child")),
    choices=tuple(_BY_SELECTIVITY),
    series_titles=_CHANGE_TITLES,
    measures=_CHANGES,
    axes=_CHANGE_AXES,
    trial=measure_changes,
)
FIG15C: Final = Experiment(
    planner=SHEDDING,
    name="fig15c",
    title="Rows to send after a movement of load",
    about="Paper 003, section 8.2.5, figure 15(c): cost moves from the operator of a chain on the "
    "parent node to that on the child node. The chains are not stated; assumed are crossed ones of "
    f"60 and 36 ms, as a movement of 24 ms reverses them. {_CHANGE_TEXT}",
    x=Axis("tolerance", "Tolerated difference of results"),
    panels=_CHANGE_PANELS,
    parameters=ByMovement,
    values=(0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3),
    series=tuple(_BY_MOVEMENT),
    choices=tuple(_BY_MOVEMENT),
    series_titles=_CHANGE_TITLES,
    measures=_CHANGES,
    axes=_CHANGE_AXES,
    trial=measure_changes,
)
