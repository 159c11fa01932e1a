"""Readings of scales in a warehouse, and queries over them, for tests of the engine."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from workers.pipeline.engine.assignment.subscriptions import Intake, NodeGroup, Subscription
from workers.pipeline.engine.evaluation.drop_rules import sample_hashes
from workers.pipeline.engine.evaluation.records import SAMPLE_HASH, BlockRun, Records

COLUMNS = {"ts": Kind.TIME, "shelf": Kind.TEXT, "grams": Kind.FLOAT, "box": Kind.INT}
# The stubs take fields of one type only.
FIELDS: Any = [("ts", pa.timestamp("ms", "UTC")), ("shelf", pa.string()), ("grams", pa.float64()),
     ("box", pa.int64())]  # fmt: skip
SCHEMA: Any = pa.schema(FIELDS)


def readings(count: int, seed: int = 1, streams: Sequence[int] = (1, 2), late: int = 0) -> Records:
    """Return so many readings in five seconds, divided among the streams.

    `late`: so many of the first stream are older than its mark allows.
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = [
        {"ts": int(rng.integers(0, 5_000)), "shelf": f"shelf {rng.integers(6)}",
         "grams": float(rng.integers(1, 4_000)), "box": int(rng.integers(1 << 40))}
        for _ in range(count)
    ]  # fmt: skip
    for row in rows[:late]:
        row["ts"] -= 10_000_000
    size = count // len(streams)
    lengths = [size] * (len(streams) - 1) + [count - size * (len(streams) - 1)]
    runs = [BlockRun(stream, n, 5_000) for stream, n in zip(streams, lengths, strict=True)]
    luck = {SAMPLE_HASH: sample_hashes(streams[0], f"{seed}-0", count)}
    times = np.array([row["ts"] for row in rows], np.int64)
    return Records.of(pa.Table.from_pylist(rows, SCHEMA), times, runs, luck, event_time="ts")


def computation(values: Mapping[str, str], **more: Any) -> Computation:
    """Return a computation by shelf, in windows of a second if nothing else is given."""
    text = {"key": ["shelf"], "window_s": 1.0, **more}
    return computation_of(QueryText(dict(values), **text), COLUMNS)


def group_of(
    computed: Computation, queries: Sequence[int], tasks: int = 1, intake: Intake | None = None
) -> NodeGroup:
    """Return queries with one computation over the streams 1 and 2, with all of their tasks."""
    mine = np.ones(tasks, np.bool_)
    subscriptions = [Subscription(query, 1, (1, 2), tasks, mine) for query in queries]
    return NodeGroup.of(computed, subscriptions, intake or Intake())
