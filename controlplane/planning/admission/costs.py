"""Costs of queries from samples of telemetry: per record, and per merged partial result."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median
from typing import Any, Final

# A node that is busy for less of its time mostly shows the fixed cost of a micro-batch.
LEAST_BUSY: Final = 0.25
# The same of the time that an aggregator node merges.
LEAST_MERGE_BUSY: Final = 0.05

Samples = Sequence[Mapping[str, Any]]


def operator_seconds(samples: Samples, emulated: Mapping[int, float]) -> float | None:
    """Return the seconds that a node needs per record, None: not measured.

    The median over samples and nodes of the share of time that a node computes, without merging,
    over its records/s, of nodes with records that are busy for a quarter of their time. `emulated`:
    the capacities in records/s of nodes that the data plane limits to them, by index.
    """
    costs = []
    for sample in samples:
        for node, (load, busy, merge_busy) in enumerate(_of_nodes(sample)):
            if load and emulated.get(node):
                costs.append(1 / emulated[node])
            elif load and busy >= LEAST_BUSY:
                costs.append(max(0.0, busy - merge_busy) / load)
    return _rounded(costs)


def seconds_by_node(samples: Samples) -> dict[int, float]:
    """Return the seconds that each node needs per delivered record, without unmeasured nodes.

    The median over the samples in which the node is busy for a quarter of its time.
    """
    costs: dict[int, list[float]] = {}
    for sample in samples:
        for node, (load, busy, merge_busy) in enumerate(_of_nodes(sample)):
            if load and busy >= LEAST_BUSY:
                costs.setdefault(node, []).append(max(0.0, busy - merge_busy) / load)
    return {node: round(median(values), 9) for node, values in costs.items()}


def _of_nodes(sample: Mapping[str, Any]) -> Iterator[tuple[float, float, float]]:
    """Yield records/s, share of time that it computes and that it merges, of each node."""
    loads, busy = sample.get("loads") or (), sample.get("busy") or ()
    # Samples of an earlier release have no `merge_busy`.
    merge_busy = chain(sample.get("merge_busy") or (), (0.0 for _ in loads))
    return zip(loads, busy, merge_busy, strict=False)


def merge_seconds(samples: Samples) -> float | None:
    """Return the seconds that an aggregator node needs per partial result, None: not measured."""
    costs = [
        busy / merged
        for sample in samples
        for merged, busy in zip(
            sample.get("merged") or (), sample.get("merge_busy") or (), strict=False
        )
        if merged and busy >= LEAST_MERGE_BUSY
    ]
    return _rounded(costs)


def partials_per_record(samples: Samples, records_per_s: float) -> float | None:
    """Return the merged partial results per record, None: not measured.

    `records_per_s`: of all queries with an aggregator node, in the time of the samples.
    """
    merged = [sum(sample["merged"]) for sample in samples if sample.get("merged") is not None]
    if not records_per_s or not any(merged):
        return None
    return round(sum(merged) / len(merged) / records_per_s, 9)


def _rounded(costs: Sequence[float]) -> float | None:
    return round(median(costs), 9) if costs else None
