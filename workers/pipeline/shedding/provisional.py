"""The factor of the assumed costs of a provisional ladder, by the time that batches take.

A cluster that was never busy shows no cost per record: its batches take the time that they take
without records. The ladder then has equal costs for all nodes, and their factor follows from the
first batches that take longer: before them, nothing is dropped for the sake of assumed costs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from controlplane.wire.routing.compiled_ladder import CompiledLadder, Floats, Resource
from controlplane.wire.routing.ladder import ResourceKind

# A batch shows a cost if it takes so many times the time of an empty one.
_LONG: Final = 2.0
# Batches that must show it: a single one may be long for other reasons.
_BATCHES: Final = 2


def is_assumed(resource: Resource, capacities: Mapping[int, float]) -> bool:
    """Return whether the costs of a resource of a provisional ladder are assumed.

    `capacities`: records/s of nodes with an emulated capacity.
    """
    kind, number = resource
    return kind is ResourceKind.NODE and number not in capacities


def cost_factor(
    ladder: CompiledLadder, rows: Sequence[Mapping[str, Any]], capacities: Mapping[int, float]
) -> float:
    """Return by what to multiply the assumed costs of a provisional ladder; 0: not known yet.

    The least factor of the newest batches with records. `rows`: telemetry, the newest first.
    """
    assert ladder.ladder.is_provisional
    assumed = np.array([is_assumed(resource, capacities) for resource in ladder.resources])
    newest = [row for row in rows if row.get("in") and row.get("work_ms")][:_BATCHES]
    if len(newest) < _BATCHES or not assumed.any():
        return 0.0
    return min(_factor_of(ladder, row, assumed) for row in newest)


def _factor_of(ladder: CompiledLadder, row: Mapping[str, Any], assumed: Floats) -> float:
    """Return the factor by which the fullest resource takes the time of a batch."""
    empty_s, batch_s = (ladder.ladder.empty_batch_ms or 0) / 1000, ladder.ladder.drain_ms / 2000
    work_s = float(row["work_ms"]) / 1000
    if work_s <= _LONG * empty_s:
        return 0.0
    records = np.array([row.get("streams", {}).get(str(stream), 0) for stream in ladder.streams])
    by_rung = ladder.loads(records.astype(np.float64))[assumed]
    rungs = np.arange(by_rung.shape[1])
    position = float(row.get("ladder_position") or 0.0)
    seconds = max(float(np.interp(position, rungs, loads)) for loads in by_rung)
    # Of a batch of the longest duration, this share is left for records.
    usable = 1 - empty_s / max(batch_s, _LONG * empty_s) if empty_s else 1.0
    return (work_s - empty_s) / (seconds * usable) if seconds else 0.0
