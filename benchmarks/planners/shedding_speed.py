"""How fast the planners of load shedding are, against the targets of docs/benchmarks.md.

    python -m benchmarks.planners.shedding_speed [--points 10000] [--repeats 5] [--large]

Times are the best of the repeats, on one core, without compiling. `exact`: valuing all points of 8
inputs on two nodes with the planning, all cuts of many inputs, look-ups of plans, a tree of nodes,
and a fan-out on one node. Then Solver and C-FIT on the crossed chains (64, 32) of paper 003,
figure 9, with the largest error at random infeasible points. At last `compute_ladder` on snapshots
of clusters: 1,200 queries of 64 streams on 16 nodes, and with --large 10,000 of 300 on 40. Every
fifth query has two streams, every tenth runs on three nodes; popularity is Zipf's.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from algorithms.lab.shedding.exact.part import Part
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.lab.shedding.fit.central import FitTables
from algorithms.lab.shedding.plan_table.network_table import build_network_table
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import plan_rungs
from algorithms.vocabulary import Floats
from benchmarks.planners.popularity import distinct_draws

# Section 8.2.4 of paper 003: costs in ms, and the rates of its figures.
EIGHT: Final = ((0.016, 0.008), (0.008, 0.016)) * 4
CROSSED: Final = ((0.064, 0.032), (0.032, 0.064))
MOST_RATE: Final = 60.0
EPSILON: Final = 0.05
TREE_NODES: Final = 20
TREE_INPUTS: Final = 32
TREE_EDGES: Final = 134
# Queries, streams and nodes of a cluster.
CLUSTER: Final = (1_200, 64, 16)
LARGE_CLUSTER: Final = (10_000, 300, 40)


def main() -> None:
    options = parse_options()
    generator = np.random.default_rng(1)
    _report_eight_inputs(options, generator)
    _report_cuts(options, generator)
    _report_tree(options, generator)
    _report_fan_out(options, generator)
    _report_crossed(options, generator)
    for sizes in (options.cluster, LARGE_CLUSTER) if options.large else (options.cluster,):
        _report_cluster(options, *sizes)


def chains(costs: Sequence[Sequence[float]]) -> Network:
    """Return chains over all nodes, of selectivity and weight 1; chain q costs `costs[q]`."""
    nodes = [f"n{node}" for node in range(len(costs[0]))]
    operators = []
    for query, row in enumerate(costs):
        source = f"i{query}"
        for node, cost in zip(nodes, row, strict=True):
            operators.append(Operator(f"{node}_q{query}", node, cost, 1.0, (source,)))
            source = operators[-1].name
    inputs = tuple(f"i{query}" for query in range(len(costs)))
    outputs = {f"{nodes[-1]}_q{query}": 1.0 for query in range(len(costs))}
    return Network(dict.fromkeys(nodes, 1.0), inputs, tuple(operators), outputs)


def tree_network(generator: np.random.Generator) -> Network:
    """Return a binary tree of nodes; inputs reach the root, and branches go down to children."""
    inputs = tuple(f"i{number}" for number in range(TREE_INPUTS))
    operators = [_operator(generator, f"o{k}", 0, name) for k, name in enumerate(inputs)]
    place = {operator.name: 0 for operator in operators}
    readers = dict.fromkeys(place, 0)
    edges = 0
    while edges < TREE_EDGES:
        source = str(generator.choice(list(place)))
        # The second reader of an operator makes both edges drop locations.
        more = {0: 0, 1: 2}.get(readers[source], 1)
        node = min(2 * place[source] + 1 + int(generator.integers(2)), TREE_NODES - 1)
        if edges + more > TREE_EDGES or node <= place[source]:
            continue
        operator = _operator(generator, f"o{len(operators)}", node, source)
        operators.append(operator)
        place[operator.name], readers[operator.name] = node, 0
        readers[source] += 1
        edges += more
    outputs = {
        name: float(generator.uniform(0.5, 2)) for name, count in readers.items() if count == 0
    }
    nodes = {f"n{node}": 1.0 for node in range(TREE_NODES)}
    return Network(nodes, inputs, tuple(operators), outputs)


def overloaded(network: Network, rates: Floats, generator: np.random.Generator) -> Network:
    """Return the network with capacities of 0.4 to 1 times the loads without drops."""
    model = FlowModel.of(network)
    loads = model.loads @ model.unshed(rates) * generator.uniform(0.4, 1.0, len(network.nodes))
    limits = {
        node: load if load > 0 else 1.0
        for node, load in zip(network.nodes, loads.tolist(), strict=True)
    }
    return Network(limits, network.inputs, network.operators, network.outputs)


def _operator(generator: np.random.Generator, name: str, node: int, source: str) -> Operator:
    cost, selectivity = generator.uniform(0.001, 0.01), generator.uniform(0.5, 1.0)
    return Operator(name, f"n{node}", float(cost), float(selectivity), (source,))


def fan_out(generator: np.random.Generator, branches: int) -> Network:
    """Return an operator with branches of random costs, all on one node."""
    operators = [Operator("common", "A", 1.0, 1.0, ("i0",))]
    for number in range(branches):
        cost = float(generator.uniform(1, 9))
        operators.append(Operator(f"b{number}", "A", cost, 1.0, ("common",)))
    outputs = {f"b{number}": 1.0 for number in range(branches)}
    return Network({"A": 1.0}, ("i0",), tuple(operators), outputs)


def _report_eight_inputs(options: argparse.Namespace, generator: np.random.Generator) -> None:
    network = chains(EIGHT)
    points = generator.uniform(0, MOST_RATE, (options.valued, len(EIGHT)))
    seconds, values = _best(options.repeats, lambda: ExactPlanner(network).values(points))
    expected = FlowProgram(FlowModel.of(network))
    worst = max(
        abs(expected.solve(point).value - value) / value
        for point, value in zip(points[:200], values[:200].tolist(), strict=True)
    )
    print(
        f"8 inputs, 2 nodes: {options.valued:,} points valued in {1e3 * seconds:.2f} ms, planning "
        f"included; {worst:.1e} from the LP"
    )
    planner = ExactPlanner(network)
    (part,) = planner.parts
    part.all_flows(points)
    programs = part.programs
    compiled, _ = _best(options.repeats, lambda: part.all_flows(points))
    python, _ = _best(options.repeats, lambda: [planner.flows(point) for point in points])
    keep, _ = _best(options.repeats, lambda: [planner.keep(point) for point in points])
    rates = [dict(zip(network.inputs, point.tolist(), strict=True)) for point in points[:200]]
    plan, _ = _best(options.repeats, lambda: [planner.plan(rate) for rate in rates])
    each = 1e6 / len(points)
    print(
        f"  look-up: compiled {each * compiled:.2f} us, from Python flows {each * python:.1f} us, "
        f"fractions {each * keep:.1f} us, plan with outcome {1e6 * plan / len(rates):.0f} us; "
        f"{part.regions.count} regions, {programs} programs"
    )


def _report_cuts(options: argparse.Namespace, generator: np.random.Generator) -> None:
    network = chains(generator.uniform(0.001, 0.1, (options.inputs, 2)).tolist())
    seconds, cuts = _best(options.repeats, lambda: Part(network).cuts())
    print(
        f"{options.inputs} inputs, 2 nodes: all {len(cuts.constant):,} cuts in "
        f"{1e3 * seconds:.1f} ms"
    )


def _report_tree(options: argparse.Namespace, generator: np.random.Generator) -> None:
    base = generator.uniform(5, 50, TREE_INPUTS)
    network = overloaded(tree_network(generator), base, generator)
    cold, planner = _best(options.repeats, lambda: _planned(network, base))
    near = base * generator.uniform(0.9, 1.1, (options.valued // 10, TREE_INPUTS))
    binding = planner.parts[0].regions.table.size[0]
    times = []
    for point in near:
        started = time.perf_counter()
        planner.flows(point)
        times.append(time.perf_counter() - started)
    again, _ = _best(options.repeats, lambda: [planner.flows(point) for point in near])
    print(
        f"tree of {TREE_NODES} nodes, {TREE_INPUTS} inputs, {len(network.locations)} drop "
        f"locations, {binding} nodes full: cold {1e3 * cold:.1f} ms"
    )
    print(
        f"  rates within 10 %: mean {1e3 * np.mean(times):.2f}, 99th percentile "
        f"{1e3 * np.percentile(times, 99):.2f} ms, {planner.programs} programs of {len(near)}; "
        f"the same rates again {1e6 * again / len(near):.0f} us"
    )
    _report_update(options, planner, near)
    problem = SheddingProblem(network, dict(zip(network.inputs, base.tolist(), strict=True)))
    seconds, ladder = _best(options.repeats, lambda: plan_rungs(problem, 10.0))
    print(
        f"  ladder up to 10 times the rates: {len(ladder.rungs)} rungs, loss {ladder.loss:.2%}, "
        f"{1e3 * seconds:.0f} ms"
    )


def _report_update(options: argparse.Namespace, planner: ExactPlanner, near: Floats) -> None:
    network = planner.network
    nodes = {name: 1.02 * limit for name, limit in network.nodes.items()}
    larger = replace(network, nodes=nodes)
    seconds, changed = _best(options.repeats, lambda: planner.updated(larger))
    for point in near:
        changed.flows(point)
    print(
        f"  update of {planner.regions} regions after a change of all capacities: "
        f"{1e3 * seconds:.1f} ms; then {changed.programs} programs of {len(near)}"
    )


def _planned(network: Network, rates: Floats) -> ExactPlanner:
    planner = ExactPlanner(network)
    planner.flows(rates)
    return planner


def _report_fan_out(options: argparse.Namespace, generator: np.random.Generator) -> None:
    network = fan_out(generator, options.branches)
    unit = 1 / sum(operator.cost for operator in network.operators)
    rates = np.array([3 * unit])
    seconds, planner = _best(options.repeats, lambda: _planned(network, rates))
    program = FlowProgram(FlowModel.of(network))
    worst = 0.0
    for factor in np.linspace(1.01, 50, 50):
        best = program.solve(rates / 3 * factor).value
        worst = max(worst, abs(planner.value(rates / 3 * factor) - best) / best)
    print(
        f"fan-out {options.branches} on one node: {1e3 * seconds:.2f} ms, {worst:.1e} from the LP"
    )


def _report_crossed(options: argparse.Namespace, generator: np.random.Generator) -> None:
    network = chains(CROSSED)
    model, exact = FlowModel.of(network), ExactPlanner(network)
    points = generator.uniform(0, MOST_RATE, (3 * options.points, 2))
    is_over = (points @ model.loads.toarray().T > model.capacities).any(axis=1)
    points = points[is_over][: options.points]
    best = exact.values(points)
    bounds = [MOST_RATE] * 2
    seconds, table = _best(options.repeats, lambda: build_network_table(model, bounds, EPSILON))
    given = [float(model.values @ table.flows_at(point)) for point in points]
    print(
        f"Solver, {EPSILON:.0%}, crossed chains: {table.lp_values:,} LP values, "
        f"{1e3 * seconds:.0f} ms, largest error at {len(points):,} infeasible points "
        f"{np.max(1 - given / best):.2%}"
    )
    seconds, tables = _best(options.repeats, lambda: FitTables.of(network, EPSILON))
    given = [tables.lookup(point).outcome.value for point in points]
    print(
        f"C-FIT, {EPSILON:.0%}, crossed chains: {tables.rows:,} rows, {1e3 * seconds:.1f} ms, "
        f"largest error {np.max(1 - given / best):.2%}"
    )


def _report_cluster(options: argparse.Namespace, queries: int, streams: int, nodes: int) -> None:
    from controlplane.planners.shedding.ladder import compute_ladder  # noqa: PLC0415 - see below

    for what, weights in (("random weights", None), ("equal weights", (1.0,))):
        snapshot = cluster_snapshot(queries, streams, nodes, weights)
        repeats = 1 if queries > CLUSTER[0] else options.repeats
        seconds, ladder = _best(repeats, partial(compute_ladder, snapshot))
        print(
            f"ladder of {queries:,} queries, {streams} streams, {nodes} nodes, {what}: "
            f"{seconds:.2f} s, {len(ladder.rungs)} rungs, {len(ladder.edges):,} edges"
        )


def cluster_snapshot(
    queries: int, streams: int, nodes: int, weights: Sequence[float] | None
) -> Any:
    """Return the snapshot of a cluster with measured costs; `weights`: None for random ones."""
    import django  # noqa: PLC0415 - the other figures do not need it

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    from tests.support.shedding import SheddingCluster  # noqa: PLC0415 - needs Django

    draw = np.random.default_rng(1)
    cluster = SheddingCluster(
        dict(enumerate(draw.uniform(20, 500, streams).tolist(), 1)),
        draw.uniform(2e-5, 8e-5, nodes).tolist(),
        split_seconds=1e-5, merge_s=1e-5, partials_per_record=0.05,
    )  # fmt: skip
    popularity = 1 / np.arange(1.0, streams + 1)
    pairs = 1 + distinct_draws(draw, popularity / popularity.sum(), queries, 2)
    for query, pair in enumerate(pairs.tolist(), 1):
        places = draw.choice(nodes, 3 if query % 10 == 0 else 1, replace=False).tolist()
        cluster.add(
            query, sorted(pair) if query % 5 == 0 else pair[:1], places,
            weight=float(draw.uniform(0.1, 5) if weights is None else draw.choice(weights)),
            aggregators=places[:1] if len(places) > 1 else (),
        )  # fmt: skip
    return cluster.snapshot()


def _best(repeats: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least time in seconds, after a first run that compiles, and the last result."""
    result, seconds = run(), []
    for _ in range(repeats):
        started = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - started)
    return min(seconds), result


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000, help="infeasible points, for errors")
    parser.add_argument("--valued", type=int, default=4_000, help="points of 8 inputs")
    parser.add_argument("--inputs", type=int, default=64, help="of the network of all cuts")
    parser.add_argument("--branches", type=int, default=512, help="of the fan-out")
    parser.add_argument("--cluster", type=int, nargs=3, default=CLUSTER, metavar="NUMBER",
                        help="queries, streams and nodes of the cluster")  # fmt: skip
    parser.add_argument("--large", action="store_true", help="a cluster of 10,000 queries as well")
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
