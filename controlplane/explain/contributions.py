"""Which streams, keys and queries contribute most to the load of a node."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.explain.causes.stream_rises import StreamRises
from controlplane.explain.node_keys import NodeKeys
from controlplane.explain.node_work import HostedQuery
from controlplane.explain.values import Contribution, Contributions

# Rows of each kind; all others are one row.
LISTED: Final = 5


def stream_contributions(
    rises: StreamRises, weights: Floats, excess: float
) -> Contributions | None:
    """Return the streams by their part of the increase, or of the load if there is no increase.

    `weights`: the part of each stream that the node receives; `excess`: records/s above the limit;
    a stream that is larger is marked.
    """
    read = weights > 0
    if not read.any():
        return None
    changed = weights * (rises.after - rises.before)
    increase, load = float(np.maximum(changed, 0.0).sum()), float((weights * rises.after).sum())
    # A tenth: smaller changes are the usual variation.
    is_change = increase > 0.1 * load
    total = increase if is_change else load
    sizes = changed if is_change else weights * rises.after
    rows, shown = [], 0.0
    for place in rises.largest(sizes, LISTED, read):
        size, rise, weight = float(sizes[place]), rises.row(place), float(weights[place])
        part = max(0.0, size) / total if total else 0.0
        rows.append(
            Contribution(
                rise.name, weight * rise.after, part, rise.id,
                before=weight * rise.before if is_change else None, is_large=0 < excess <= size,
            )
        )  # fmt: skip
        shown += max(0.0, size)
    others, left_out = max(0.0, float(np.maximum(sizes, 0.0).sum()) - shown), int(read.sum())
    return Contributions(
        total, rows, left_out - len(rows), others, others / total if total else 0.0, is_change
    )


def query_contributions(queries: Sequence[HostedQuery]) -> Contributions | None:
    """Return the queries by the records/s that their tasks process; None if nothing is measured."""
    known = sorted(
        (query for query in queries if query.evaluations_per_s is not None),
        key=lambda query: -(query.evaluations_per_s or 0.0),
    )
    total = sum(query.evaluations_per_s or 0.0 for query in known)
    if not total:
        return None
    rows = [
        Contribution(query.name, rate := query.evaluations_per_s or 0.0, rate / total, query.id)
        for query in known[:LISTED]
    ]
    others = sum(query.evaluations_per_s or 0.0 for query in known[LISTED:])
    return Contributions(total, rows, len(known) - len(rows), others, others / total)


def key_contributions(keys: NodeKeys | None, load: float, excess: float) -> Contributions | None:
    """Return the keys by their part of the load of a node (records/s); None without samples."""
    if keys is None or not load:
        return None
    rows = [
        Contribution(
            row.label, row.rate, min(1.0, row.rate / load), query=row.query.name,
            before=row.before, is_large=0 < excess <= row.rate,
        )
        for row in keys.rows[:LISTED]
    ]  # fmt: skip
    shown = sum(row.rate for row in rows)
    others = max(0.0, keys.total - shown)
    left_out = keys.others + len(keys.rows) - len(rows)
    share = min(1.0, others / load)
    return Contributions(load, rows, left_out, others, share, sampled=keys.sampled)
