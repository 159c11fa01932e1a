"""What measuring tasks costs a node, as a share of its processor time.

    .venv/bin/python -m benchmarks.planners.measuring_cost [--batches 60]

One node's batches in memory, with everything that is measured and without, in turns; medians.
25,000 records of 20 streams a batch, 100 small queries and 4 queries split over 32 tasks.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from tests.support.texts import SUMMARY
from workers.demo.recording import REPORT
from workers.pipeline.engine import advance, partial_aggregation
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.evaluation.records import BlockRun, Records
from workers.pipeline.engine.store import MemoryStore
from workers.pipeline.nodes import node_batch

RECORDS, STREAMS = 25_000, 20
NOTHING = np.zeros((0, 4), np.int64)


def main() -> None:
    spent: dict[bool, list[float]] = {True: [], False: []}
    stores, tasks = {True: MemoryStore(), False: MemoryStore()}, all_tasks()
    count = parse_options().batches
    for batch, records in enumerate(batches(count)):
        for measured in (True, False) if batch % 2 else (False, True):
            with ExitStack() as stack:
                if not measured:
                    _without_measures(stack)
                started = time.process_time()
                changed = advance.advance_state(
                    stores[measured], tasks, records, records.newest(), batch
                )
                if measured:
                    node_batch.measures_of(changed, 1_000)
                spent[measured].append(time.process_time() - started)
    with_it, without = (
        statistics.median(spent[measured][count // 6 :]) * 1000 for measured in (True, False)
    )
    share = (with_it - without) / with_it
    print(json.dumps({"ms": round(with_it, 2), "ms_without": round(without, 2),
                      "share": round(share, 4)}))  # fmt: skip


def _without_measures(stack: ExitStack) -> None:
    stack.enter_context(patch.object(partial_aggregation, "_task_records", lambda _: NOTHING))
    stack.enter_context(patch.object(advance, "task_bytes", lambda *_: NOTHING))


def all_tasks() -> Tasks:
    """Return the tasks of one node of eight."""
    rng = np.random.default_rng(1)
    small = [
        Subscription(query, 0, tuple(rng.choice(STREAMS, 3, replace=False).tolist()), 1,
                     np.ones(1, np.bool_))
        for query in range(1, 101)
    ]  # fmt: skip
    every = tuple(range(STREAMS))
    own_tasks = np.arange(32) % 8 == 0
    groups = [NodeGroup.of(computation_of(SUMMARY, REPORT.kinds), small)]
    for query in range(4):
        text = QueryText({"n": "count(*)", "m": "mean(speed)"}, where=f"x > {query}", key=["car"])
        subscription = Subscription(1_000 + query, 0, every, 32, own_tasks)
        groups.append(NodeGroup.of(computation_of(text, REPORT.kinds), [subscription]))
    return Tasks.of(groups)


def batches(count: int) -> Iterator[Records]:
    """Yield so many batches of ten seconds of event time each."""
    rng = np.random.default_rng(2)
    for batch in range(count):
        times = 1_211_000_000_000 + batch * 10_000 + rng.integers(0, 10_000, RECORDS)
        columns = [times, rng.integers(0, 500, RECORDS), *rng.integers(0, 1000, (2, RECORDS)),
                   rng.integers(0, 3000, RECORDS)]  # fmt: skip
        arrays = [pa.array(c).cast(f.type) for c, f in zip(columns, REPORT.arrow, strict=True)]
        size = RECORDS // STREAMS
        runs = [BlockRun(stream, size, None) for stream in range(STREAMS)]
        table = pa.Table.from_arrays(arrays, schema=REPORT.arrow)
        yield Records.of(table, times, runs, event_time="ts")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=60, help="a sixth of them only warms up")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
