"""A proposal's parts from its snapshot: moves in their order, measures, price, way back, seal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from algorithms.migration.planner import MIGRATION
from algorithms.registry import PLACEMENT, algorithm
from controlplane.errors import Conflict
from controlplane.models import Snapshot
from controlplane.planning import budget as budgets
from controlplane.planning import execution_plan, migration, placement
from controlplane.planning.execution_plan import Caps
from controlplane.planning.measures import measures
from controlplane.planning.placement import Planned
from controlplane.planning.snapshot import ClusterSnapshot
from controlplane.planning.snapshots import seal_of

Progress = Callable[[float], None]
Row = Mapping[str, Any]


def planned(
    planner: str, name: str, parameters: Row, snapshot: ClusterSnapshot, progress: Progress
) -> Planned:
    """Run an algorithm of a planner. Raises `Conflict` and what the algorithm raises."""
    if planner not in _PLANNERS:
        raise Conflict("not_connected", f"The {planner} planner makes no proposals yet")
    return _PLANNERS[planner](name, parameters, snapshot, progress)


def _placement(name: str, given: Row, snapshot: ClusterSnapshot, progress: Progress) -> Planned:
    chosen = algorithm(PLACEMENT, name)
    # Candidates of a comparison share a snapshot, and may differ in their slack.
    slack = {"nu": given.get("nu", snapshot.nu)}
    return placement.plan_moves(replace(snapshot, **slack), chosen, _own(chosen, given), progress)


def _migration(name: str, given: Row, snapshot: ClusterSnapshot, progress: Progress) -> Planned:
    chosen = algorithm(MIGRATION, name)
    found = migration.plan_task_moves(
        snapshot, chosen, _own(chosen, given), float(given["tau"]), progress
    )
    return Planned(found.moves, bytes_bound=found.bytes_bound)


def _own(chosen: Any, given: Row) -> Any:
    """Return the algorithm's own parameters out of all that were given."""
    names = {field.name for field in chosen.parameters.fields()}
    return chosen.parameters.from_mapping({n: v for n, v in given.items() if n in names})


_PLANNERS: Final = {PLACEMENT: _placement, MIGRATION: _migration}
CONNECTED: Final = tuple(_PLANNERS)


def columns_of(
    row: Snapshot,
    moves: Sequence[Row],
    caps: Caps,
    step_s: float,
    *,
    budget: Mapping[str, float] | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Return what a proposal keeps of these moves: in order, measured, priced and sealed.

    With a budget (`budget`), of those that are worth most within it.
    """
    snapshot = row.value()
    carried = execution_plan.priced(snapshot, execution_plan.allowed(snapshot, moves))
    told: dict[str, Any] = {}
    if budget:
        afforded = budgets.afforded(snapshot, carried, budget, caps, step_s, progress)
        carried, told = [dict(move) for move in afforded.moves], {"budget": afforded.told}
    ordered = execution_plan.in_order(snapshot, carried)
    before, after = measures(snapshot), measures(snapshot, ordered.moves)
    predicted = (
        execution_plan.price(ordered.moves, caps, step_s)
        | {
            "safe": ordered.safe,
            "imbalance": after["imbalance"],
            "replication_factor": after["replication_factor"],
            "left_out": len(moves) - len(carried),
        }
        | told
    )
    back = execution_plan.price(execution_plan.backwards(ordered.moves), caps, step_s)
    return {
        "moves": ordered.moves,
        "path": ordered.path,
        "before": before,
        "after": after,
        "predicted": predicted,
        "undo": {name: back[name] for name in ("moves", "bytes", "seconds")},
        "seal": seal_of(ordered.moves, row.digest),
    }
