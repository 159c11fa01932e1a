"""Load shedding on the real pipeline: none, local, and coordinated (paper 003, sections 1.1 and 8).

    python -m benchmarks.planners.shedding_pipeline [--policies none local coordinated]
        [--trace bc_two_halves_100ms] [--mean 450] [--seconds 79] [--bound 5] [--hold 5]

Weir's application on Spark has a split node of 1,000 records/s that reads two streams. Node 0, of
300 records/s, computes a query of stream 1; node 1, of 1,000 records/s, one of stream 2. So both
chains share the split node, and behind it stream 1 has a bottleneck of its own, as in figure 1 of
the paper. The streams replay recorded rates of two inputs in real time; `--trace steady` has the
same rate all the time.

"coordinated": the ladder of the planner along the mean rates. "local": each node drops what it
cannot process itself. The split node keeps equal parts of both streams, and node 0 drops what is
still too much for it: the ladder keeps the product of both, and counts the capacity of the split
node as used that such records took. "none": no drops; records wait.

Throughput is the records that nodes processed until the end of the input; the optimum is the sum
over windows of a second of the linear program at the appended rates, without buffering. Latency is
the p95 of the micro-batches, from the append to the result.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import redis

from algorithms.lab.shedding.real_workloads import recorded_rates
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import plan_rungs
from algorithms.vocabulary import Floats
from benchmarks.application import Weir, wait
from controlplane.plans.ladder_settings import SheddingSettings
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetCapacity,
    SetLadder,
    SetNodeCount,
    SetSchema,
    SetSplitCapacity,
)
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.redis_server import running_redis

CLUSTER: Final = "bursts"
SPLIT, NODES = 1_000.0, (300.0, 1_000.0)
STREAMS: Final = (1, 2)
STEP_S: Final = 0.1
MAX_FACTOR: Final = 4.0
LOCAL_RUNGS: Final = 48
SCHEMA: Final = StreamSchema(
    (ColumnSpec("sent_at", "timestamp(ms)", nullable=False), ColumnSpec("size", "int64")),
    "sent_at",
)


@dataclass
class Course:
    """The application, and a producer of both streams."""

    application: Weir
    client: "redis.Redis"
    producer: Producer
    version: int = 0
    sent: int = 0

    def publish(self, *actions: Action) -> None:
        """Publish the next routing version."""
        self.version += 1
        publish(self.client, CLUSTER, RoutingDelta(self.version, actions))

    def replay(self, counts: Any, window_s: float) -> None:
        """Append so many records of both streams, int64[windows, 2], each window at its end."""
        started = time.monotonic()
        for number, row in enumerate(counts.tolist(), start=1):
            time.sleep(max(0.0, started + number * window_s - time.monotonic()))
            blocks = {s: _block(count) for s, count in zip(STREAMS, row, strict=True) if count}
            if blocks:
                self.producer.append(blocks)
                self.sent += sum(row)

    def empty(self) -> None:
        """Process everything that waits, without limits and without drops."""
        self.publish(SetLadder(), *_capacities(emulated=False))
        wait(self.application, self._is_empty)
        self.publish(*_capacities(emulated=True))

    def has_version(self, rows: Sequence[Any]) -> bool:
        """Return whether a micro-batch had the newest routing version."""
        return bool(rows[-1]["version"] == self.version)

    def _is_empty(self, rows: Sequence[Any]) -> bool:
        read = sum(row["in"] for row in rows) >= self.sent
        return bool(read and rows[-1]["version"] == self.version and not rows[-1]["waiting"])


def main() -> None:
    options = parse_options()
    rates, window_s = _rates(options)
    counts = np.rint(rates * window_s).astype(np.int64)[: int(options.seconds / window_s)]
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = Path(name)
        with running_redis(folder) as url, Weir(url, folder / "spark", CLUSTER, 2, 1) as weir:
            client = redis.Redis.from_url(url)
            with Producer(url, CLUSTER, schemas=dict.fromkeys(STREAMS, SCHEMA)) as producer:
                course = Course(weir, client, producer)
                course.publish(*_first_table())
                course.replay(np.full((20, 2), 10), STEP_S)
                wait(weir, lambda rows: sum(row["in"] for row in rows) >= course.sent)
                for policy in options.policies:
                    course.empty()
                    report(policy, course, counts, window_s, options)


def report(policy: str, course: Course, counts: Any, window_s: float, options: Any) -> None:
    """Replay the rates under a policy, and print throughput and latency."""
    base = counts.sum(axis=0) / (len(counts) * window_s)
    ladders = {"coordinated": coordinated, "local": local}
    if policy in ladders:
        ladder = replace(ladders[policy](base), hold_ms=round(options.hold * 1000))
        course.publish(SetLadder(ladder))
        course.replay(np.full((20, 2), 10), STEP_S)
        wait(course.application, course.has_version)
    since = len(course.application.telemetry())
    before = course.sent
    course.replay(counts, window_s)
    rows = course.application.telemetry()[since:]
    read, waiting = sum(row["in"] for row in rows), rows[-1]["waiting"]
    dropped = sum(sum(row["ladder_dropped"].values()) for row in rows)
    best = optimum(counts, window_s)
    processed = read - dropped - waiting
    p95 = np.array([row["latency"]["p95"] for row in rows if row["latency"]]) / 1000
    late, bound = np.mean(p95 > options.bound), options.bound
    print(
        f"{policy:12s} {course.sent - before:7,d} appended, {dropped:7,d} dropped,"
        f" {processed:7,d} processed ({processed / best:.3f} of the optimum {best:,.0f});"
        f" p95 latency median {np.median(p95):5.2f} s, largest {p95.max():6.2f} s,"
        f" {late:.0%} of {len(p95)} micro-batches above {bound:g} s",
        flush=True,
    )


def network() -> Network:
    """Return the query network of both chains."""
    return Network(
        {"split": SPLIT, "node 0": NODES[0], "node 1": NODES[1]},
        ("1", "2"),
        tuple(
            operator
            for number, stream in enumerate(("1", "2"))
            for operator in (
                Operator(f"read {stream}", "split", 1.0, 1.0, (stream,)),
                Operator(f"query {stream}", f"node {number}", 1.0, 1.0, (f"read {stream}",)),
            )
        ),
        {"query 1": 1.0, "query 2": 1.0},
    )


def coordinated(base: Floats) -> Ladder:
    """Return the ladder of the planner along these rates of both streams."""
    problem = SheddingProblem(network(), dict(zip(("1", "2"), base.tolist(), strict=True)))
    rungs = plan_rungs(problem, MAX_FACTOR).rungs
    return Ladder(
        tuple(
            Rung(rung.factor, tuple(KeptPart(s, INPUT, rung.kept[str(s)]) for s in STREAMS))
            for rung in rungs
        ),
        _costs(1 / SPLIT, 1 / SPLIT),
    )


def local(base: Floats) -> Ladder:
    """Return the ladder of nodes that each drop what they cannot process themselves."""
    total, first = float(base.sum()), float(base[0])
    rungs = []
    least = min(SPLIT / total, NODES[0] / first)
    for factor in np.geomspace(least, MAX_FACTOR, LOCAL_RUNGS).tolist():
        kept = min(1.0, SPLIT / (factor * total))
        behind = kept * min(1.0, NODES[0] / (kept * factor * first))
        rungs.append(Rung(factor, (KeptPart(1, INPUT, behind), KeptPart(2, INPUT, kept))))
    # Records of stream 1 that node 0 drops take a part of the split node, in proportion.
    return Ladder(tuple(rungs), _costs(0.0, total / float(base[1]) / SPLIT))


def _costs(first: float, second: float) -> tuple[Cost, ...]:
    return (
        Cost(1, INPUT, ResourceKind.SPLIT, 0, first),
        Cost(2, INPUT, ResourceKind.SPLIT, 0, second),
        Cost(1, INPUT, ResourceKind.NODE, 0, 1 / NODES[0]),
        Cost(2, INPUT, ResourceKind.NODE, 1, 1 / NODES[1]),
    )


def optimum(counts: Any, window_s: float) -> float:
    """Return the records that optimal plans process, second by second."""
    problem = SheddingProblem(network(), {"1": 0.0, "2": 0.0})
    program = FlowProgram(problem.model)
    size = max(1, round(1.0 / window_s))
    seconds = [counts[first : first + size] for first in range(0, len(counts), size)]
    return sum(
        program.solve(rows.sum(axis=0) / (len(rows) * window_s)).value * len(rows) * window_s
        for rows in seconds
    )


def _rates(options: Any) -> tuple[Floats, float]:
    """Return the rates of both streams, float64[windows, 2], and the seconds of a window."""
    if options.trace == "steady":
        return np.full((round(options.seconds / STEP_S), 2), options.mean), STEP_S
    return recorded_rates(options.trace, options.mean), _window_s(options.trace)


def _window_s(trace: str) -> float:
    """Return the seconds of a window of a trace, by the end of its name."""
    size = trace.rpartition("_")[2]
    return int(size[:-2]) / 1000 if size.endswith("ms") else float(size[:-1])


def _block(count: int) -> pa.RecordBatch:
    now = pa.array([time.time_ns() // 1_000_000] * count, pa.int64())
    columns = [now.cast(SCHEMA.arrow.field("sent_at").type), pa.array(np.arange(count))]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA.arrow)


def _capacities(*, emulated: bool) -> list[Action]:
    nodes = [SetCapacity(number, capacity, emulated) for number, capacity in enumerate(NODES)]
    return [SetSplitCapacity(SPLIT, emulated), *nodes]


def _first_table() -> list[Action]:
    text = json.dumps(QueryText({"n": "count(*)", "total": "sum(size)"}, window_s=10.0).to_json())
    streams = [action for stream in STREAMS
               for action in (AssignStream(stream, 0), SetSchema(stream, SCHEMA))]  # fmt: skip
    queries = [AddQuery(10 + stream, 0, stream - 1, (stream,), text) for stream in STREAMS]
    return [SetNodeCount(2), *streams, *queries]


def parse_options(arguments: Sequence[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", nargs="+", default=["none", "local", "coordinated"])
    parser.add_argument("--trace", default="bc_two_halves_100ms")
    parser.add_argument("--mean", type=float, default=450.0, help="mean rate of a stream")
    parser.add_argument("--seconds", type=float, default=79.0)
    parser.add_argument("--bound", type=float, default=5.0)
    parser.add_argument(
        "--hold", type=float, default=SheddingSettings().hold_s, help="Ladder.hold_ms, in seconds"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
