"""The ladder of a cluster: the optimal plans along its measured mix, on the edges of streams."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from algorithms.shedding.fair_rungs import plan_fair_rungs
from algorithms.shedding.rungs import RungLadder, RungPlan, first_full_factor, plan_rungs
from controlplane.errors import Conflict
from controlplane.planners.shedding.inputs import FAIR, SheddingInput
from controlplane.planners.shedding.problem import ClusterNetwork, network_of
from controlplane.planners.shedding.windows import choose_windows
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, Rung

NO_COSTS: Final = (
    "No node, split node or aggregator node has a cost: wait until the cluster processes records,"
    " or emulate the capacities of the nodes"
)
# The part of the optimal value that plans between two rungs may lose.
LOSS: Final = 1e-3
# The last rung is for at least so many times the present input: half of the capacity is then free
# for the records that wait when the ladder is armed.
ROOM: Final = 2.0
# Decimals of a kept part and significant digits of a cost: a routing version has many of them.
_DECIMALS: Final = 6
_DIGITS: Final = 7
# Smaller differences of parts are rounding.
_SAME: Final = 1e-7
# The time of a batch with few records if none was measured.
_EMPTY_BATCH_MS: Final = 1_000


def compute_ladder(snapshot: ClusterSnapshot) -> Ladder | None:
    """Return the ladder of a snapshot, None if floors or weights of 0 allow no useful drop.

    Raises `Conflict` no_query, no_rates, no_costs or too_large, and the errors of the linear
    program; of a fair ladder also `TooLarge` with too many queries.
    """
    network = network_of(snapshot)
    given = snapshot.input(SheddingInput)
    assert given is not None, "the network is that of the input"
    model, base = network.problem.model, network.problem.vector
    full = first_full_factor(model, base)
    if full == float("inf"):
        raise Conflict("no_costs", NO_COSTS, {"nodes": [node.name for node in given.nodes]})
    settings = given.settings
    most = max(full * settings.max_factor, ROOM)
    plan = plan_fair_rungs if settings.objective == FAIR else plan_rungs
    plans = plan(network.problem, most, most=settings.rungs + 1, loss=LOSS)
    rungs = _rungs(plans, _parts(network, plans))
    if not rungs:
        return None
    ladder = Ladder(
        rungs,
        tuple(map(_rounded, (*network.costs, *_deliveries(network, rungs)))),
        (),
        settings.limit,
        round(settings.hold_s * 1000),
        max(1, round(settings.backlog_s * 1000)),
        empty_batch_ms=_empty_batch_ms(network, given),
    )
    ladder = replace(ladder, windows=tuple(choose_windows(network, given, ladder).windows))
    try:
        ladder.check()
    except InconsistentDelta as error:
        raise Conflict(
            "too_large", f"The shedding plan of this cluster is not possible: {error}"
        ) from None
    return ladder


def _empty_batch_ms(network: ClusterNetwork, given: SheddingInput) -> int | None:
    """Return the duration of a batch with few records if costs are assumed, None otherwise."""
    if not network.nodes.is_provisional:
        return None
    return _EMPTY_BATCH_MS if given.batch is None else round(given.batch.usual_s * 1000)


def _rounded(cost: Cost) -> Cost:
    return cost._replace(seconds=float(f"{cost.seconds:.{_DIGITS}g}"))


def _parts(network: ClusterNetwork, plans: RungLadder) -> list[dict[Edge, float]]:
    """Return the kept part of each edge with a drop location of its own, by rung."""
    return [_parts_of(network, rung) for rung in plans.rungs[1:]]


def _parts_of(network: ClusterNetwork, rung: RungPlan) -> dict[Edge, float]:
    result: dict[Edge, float] = {}
    for (stream, query), location in network.locations.items():
        part = min(1.0, max(0.0, round(rung.kept[location], _DECIMALS)))
        members = network.groups[query].queries if query != INPUT else ()
        for edge in [(stream, member.id) for member in members] or [(stream, query)]:
            result[edge] = part
    return result


def _rungs(plans: RungLadder, parts: Sequence[Mapping[Edge, float]]) -> tuple[Rung, ...]:
    """Return the rungs by their input factor, with the edges on which some rung drops.

    An edge to a query is left out if it keeps on every rung all that its input edge keeps.
    """
    wanted = [
        edge
        for edge in (parts[0] if parts else ())
        if any(row[edge] < _before(row, edge) - _SAME for row in parts)
    ]
    if not wanted:
        return ()
    first = plans.rungs[0].factor
    return tuple(
        Rung(
            round(plan.factor / first, 9),
            tuple(KeptPart(*edge, min(row[edge], _before(row, edge))) for edge in wanted),
        )
        for plan, row in zip(plans.rungs[1:], parts, strict=True)
    )


def _before(parts: Mapping[Edge, float], edge: Edge) -> float:
    """Return the part of the stream's records that reaches an edge."""
    return 1.0 if edge[1] == INPUT else parts[edge[0], INPUT]


def _deliveries(network: ClusterNetwork, rungs: Sequence[Rung]) -> list[Cost]:
    """Return the costs of deliveries to emulated nodes, on the edge that keeps the most there.

    A node gets the records that some query keeps. Samples are nested, so that is the largest part:
    that of one query on all rungs, or at most that of the input edge.
    """
    rows = [{(kept.stream, kept.query): kept.part for kept in rung.kept} for rung in rungs]
    result = []
    for delivery, (leaders, cost) in network.deliveries.items():
        edge = _largest(delivery.stream, leaders, rows)
        result.append(cost._replace(query=edge))
    return result


def _largest(stream: int, leaders: Sequence[int], rows: Sequence[Mapping[Edge, float]]) -> int:
    """Return the query that keeps the most on all rungs, `INPUT` if there is none."""
    possible = set(leaders)
    for row in rows:
        parts = {
            query: row.get((stream, query), row.get((stream, INPUT), 1.0)) for query in leaders
        }
        most = max(parts.values())
        possible = {query for query in possible if parts[query] == most}
    return min(possible, default=INPUT)


def input_factor(network: ClusterNetwork) -> float:
    """Return the input over what the cluster can process without drops."""
    return 1 / first_full_factor(network.problem.model, network.problem.vector)
