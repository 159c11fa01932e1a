"""Aggregates that users register: their state is bytes, merged by their own code.

Merging calls Python once per two states, so such an aggregate is as slow as its author made it; all
others are columns.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from controlplane.wire.aggregates.layout import SketchAggregate
from controlplane.wire.language.registered import RegisteredAggregate, registered_aggregate
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.failures.fault import user_code
from workers.pipeline.engine.kernels.types import in_kind

# The user's aggregate by query and place among the query's aggregates.
UserAggregates = Callable[[int, int], Any]


def user_aggregate(name: str) -> Any:
    """Return a user's aggregate. Raises `LookupError` if this process does not have it."""
    return _registered(name).work


def _registered(name: str) -> RegisteredAggregate:
    result = registered_aggregate(name)
    if result is None:
        raise LookupError(f"no module registers the aggregate {name} here")
    return result


def is_user_aggregate(sketch: SketchAggregate) -> bool:
    """Return whether an aggregate is a user's."""
    return registered_aggregate(sketch.aggregate.kept.sketch) is not None


def partial_states(sketch: SketchAggregate, places: Any, values: Any) -> Any:
    """Return one row per place and key: the partial state of its values."""
    work = user_aggregate(sketch.aggregate.kept.sketch)
    names, wanted = places.column_names, _registered(sketch.aggregate.kept.sketch).takes
    values = in_kind(values, wanted)
    grouped = places.append_column("value", values).group_by(names, use_threads=False)
    result = grouped.aggregate([("value", "list")]).rename_columns([*names, "value"])
    lists = result["value"].combine_chunks()
    plain, edges = np.asarray(lists.values), np.asarray(lists.offsets).tolist()
    with user_code(sketch.aggregate.kept.sketch):
        states = [bytes(work.partial(plain[first:stop])) for first, stop in pairwise(edges)]
    which = pa.repeat(pa.scalar(sketch.index, pa.int64()), len(states))
    bare = result.select(names).append_column("a", which)
    return bare.append_column("state", pa.array(states, pa.binary()))


def merge_user_states(rows: Any, work: UserAggregates) -> Any:
    """Return rows with each list in `state` replaced by its merged state.

    Raises `QueryFault`, with the query whose aggregate cannot.
    """
    owners = zip(rows["query"].to_pylist(), rows["a"].to_pylist(), strict=True)
    states = [
        _merged(states, query, work(query, index))
        for states, (query, index) in zip(rows["state"].to_pylist(), owners, strict=True)
    ]
    column_index = rows.schema.get_field_index("state")
    return rows.set_column(column_index, "state", pa.array(states, pa.binary()))


def _merged(states: Sequence[bytes], query: int, work: Any) -> bytes:
    result, *others = states
    if others:
        with user_code(type(work).__name__, query):
            for other in others:
                result = bytes(work.merge(result, other))
    return result
