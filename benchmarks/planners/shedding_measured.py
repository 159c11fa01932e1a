"""Load shedding on nodes without emulated capacities: a ladder from their measured costs.

    python -m benchmarks.planners.shedding_measured [--seconds 60] [--quiet 60] [--rate 1500]
        [--latency 10] [--constant] [--former [--limit 0.9]]

Weir's application on Spark has two nodes, each with a query of one stream, which calls a function
that takes 1 ms per record on node 0, and 0.5 ms on node 1; all other time is that of Spark and
Weir. First, `--quiet` seconds of few records of changing rates: from their telemetry follow the
costs and the usable time, as in a cluster (`--constant`: the rates do not change, so that no cost
can be measured, and the ladder is provisional). Then each stream has `--rate` records/s.

`--former` has the settings of earlier releases: all time of a node is usable, a backlog is worked
off within five seconds; and the exact costs per record.

The optimum is the linear program's at the appended rates, with the costs and the usable time that
the telemetry of the overload itself shows: the ladder knew only the quiet time. Latency is the p95
of micro-batches in the second half of the overload.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import redis

from algorithms.shedding.lp import Lp
from algorithms.shedding.problem import SheddingProblem
from benchmarks.application import Weir, wait
from benchmarks.planners.shedding_pipeline import CLUSTER, SCHEMA, STEP_S, STREAMS, Course
from benchmarks.planners.slow_functions import SLOW_S, SLOWER_S
from controlplane.planners.shedding.inputs import (
    NodeSeconds,
    SheddingInput,
    SheddingQuery,
    SheddingStream,
)
from controlplane.planners.shedding.ladder import compute_ladder
from controlplane.planners.shedding.node_costs import measured_node
from controlplane.planners.shedding.problem import network_of
from controlplane.planning.measured.costs import COST_SERIES, BatchSeconds, batch_seconds, node_work
from controlplane.plans.ladder_settings import SheddingSettings
from controlplane.plans.snapshot import ClusterSnapshot, NodeRow, QueryRow, StreamRow
from controlplane.telemetry.samples import PreviousBatch, sample_of
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetLadder,
    SetNodeCount,
    SetSchema,
)
from controlplane.wire.routing.query_actions import AddQuery
from tests.support.redis_server import running_redis
from tests.support.series import grid_of_samples

# Records/s of a stream in the quiet time.
QUIET: Final = (20, 200)
TRIGGER_MS: Final = 200
FUNCTIONS: Final = ("slower", "slow")


def main() -> None:
    options = parse_options()
    os.environ["WEIR_FUNCTIONS"] = "benchmarks.planners.slow_functions"
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = Path(name)
        with running_redis(folder) as url, Weir(url, folder / "spark", CLUSTER, 2, 1) as weir:
            client = redis.Redis.from_url(url)
            with Producer(url, CLUSTER, schemas=dict.fromkeys(STREAMS, SCHEMA)) as producer:
                course = Course(weir, client, producer)
                course.publish(*_first_table())
                course.replay(np.full((20, 2), 10), STEP_S)
                wait(weir, lambda rows: sum(row["in"] for row in rows) >= course.sent)
                run(course, options)


def run(course: Course, options: Any) -> None:
    """Measure a quiet time, arm the ladder, and print what it keeps in an overload."""
    rng = np.random.default_rng(1)
    low, high = (QUIET[0], QUIET[0]) if options.constant else QUIET
    per_s = rng.uniform(low, high, (options.quiet, 2)).repeat(round(1 / STEP_S), axis=0)
    course.replay(np.rint(per_s * STEP_S).astype(np.int64), STEP_S)
    samples = samples_of(course)
    settings = SheddingSettings(latency_s=options.latency)
    if options.former:
        settings = replace(settings, limit=options.limit, drain_s=5.0)
    snapshot = snapshot_of(samples, per_s.mean(axis=0), settings, former=options.former)
    given, ladder = snapshot.input(SheddingInput), compute_ladder(snapshot)
    assert ladder is not None
    assert given is not None
    network = network_of(snapshot)
    print(f"batch: {given.batch}, drain {ladder.drain_ms} ms, empty {ladder.empty_batch_ms}")
    for row in network.nodes.rows:
        print(f"  {row}")
    course.publish(SetLadder(ladder))
    course.replay(np.full((20, 2), 10), STEP_S)
    wait(course.application, course.has_version)
    rates = np.full(2, options.rate)
    since = len(course.application.telemetry())
    course.replay(
        np.full((round(options.seconds / STEP_S), 2), round(options.rate * STEP_S)), STEP_S
    )
    report(course, since, rates, settings)


def report(course: Course, since: int, rates: Any, settings: SheddingSettings) -> None:
    """Print what was kept of the optimum, and the latency, in the second half of the overload."""
    rows = course.application.telemetry()[since:]
    half = rows[len(rows) // 2 :]
    seconds = (half[-1]["emitted_ms"] - half[0]["emitted_ms"]) / 1000
    processed = sum(sum(node["loads"] for node in row["nodes"]) for row in half[1:])
    snapshot = snapshot_of(samples_of(course), rates, settings)
    given = snapshot.input(SheddingInput)
    assert given is not None
    network = network_of(snapshot).problem.network
    problem = SheddingProblem(
        network, {f"stream {s}": rate for s, rate in zip(STREAMS, rates, strict=True)}
    )
    best = Lp().solve(problem).outcome.value
    ideal = Lp().solve(replace_limits(problem, given)).outcome.value
    p95 = [row["latency"]["p95"] / 1000 for row in half if row["latency"]]
    spans = [(b["emitted_ms"] - a["emitted_ms"]) / 1000 for a, b in pairwise(half)]
    late = np.mean(np.array(p95) > settings.latency_s)
    print(f"at the costs of the overload: {given.batch}")
    for row in network_of(snapshot).nodes.rows:
        print(f"  {row}")
    print(
        f"{sum(rates):,.0f} records/s, {processed / seconds:,.0f} processed:"
        f" {processed / seconds / best:.3f} of the optimum {best:,.0f} in the usable time,"
        f" {processed / seconds / ideal:.3f} of {ideal:,.0f} in all time;"
        f" batches {median(spans):.2f} s; p95 median {median(p95):.2f} s, largest {max(p95):.2f} s,"
        f" {late:.0%} of {len(p95)} above {settings.latency_s:g} s",
        flush=True,
    )
    print("positions", [round(row["ladder_position"] or 0, 2) for row in rows])


def replace_limits(problem: SheddingProblem, given: SheddingInput) -> SheddingProblem:
    """Return the problem with all time of the nodes instead of the usable one."""
    usable = {f"node {node.node}": given.usable(node.fixed_s) for node in given.nodes}
    network = problem.network
    operators = tuple(
        replace(row, cost=row.cost * usable.get(row.node, 1.0)) for row in network.operators
    )
    return SheddingProblem(replace(network, operators=operators), problem.rates)


def samples_of(course: Course) -> list[dict[str, Any]]:
    """Return the samples of all batches after the start, as the relay stores them."""
    rows = [row for row in course.application.telemetry() if row["version"] >= 1]
    return [
        sample_of(row, PreviousBatch(before["emitted_ms"], TRIGGER_MS), [1.0, 1.0])
        for before, row in pairwise(rows)
    ]


def snapshot_of(
    samples: Sequence[dict[str, Any]],
    rates: Any,
    settings: SheddingSettings,
    *,
    former: bool = False,
) -> ClusterSnapshot:
    """Return a snapshot with the costs that samples show."""
    batches = grid_of_samples(COST_SERIES, samples)
    work = node_work(batches)
    nodes = [measured_node(index, f"n{index}", 1.0, work.get(index)) for index in range(2)]
    batch = batch_seconds(batches)
    if former:
        nodes = [
            NodeSeconds(index, f"n{index}", seconds, emulated=False)
            for index, seconds in enumerate((SLOWER_S, SLOW_S))
        ]
        batch = BatchSeconds(0.0, 1.0)
    streams = [
        SheddingStream(s, f"s{s}", float(rate), 0) for s, rate in zip(STREAMS, rates, strict=True)
    ]
    queries = [SheddingQuery(s, 1.0, 0.0, [s], [], 10**9, 10**9, "", s) for s in STREAMS]
    given = SheddingInput(streams, queries, nodes, settings=settings, batch=batch)
    return ClusterSnapshot(
        1, 0.1, [NodeRow(i, f"n{i}", 1.0, active=True, emulated=False) for i in range(2)],
        [StreamRow(s, float(rate)) for s, rate in zip(STREAMS, rates, strict=True)],
        [QueryRow(s, f"q{s}", s - 1, [s]) for s in STREAMS], {}, [], [], [],
        dict.fromkeys(STREAMS, 0), 1, inputs={given.name: given},
    )  # fmt: skip


def _first_table() -> list[Action]:
    streams = [action for stream in STREAMS
               for action in (AssignStream(stream, 0), SetSchema(stream, SCHEMA))]  # fmt: skip
    queries = [
        AddQuery(10 + stream, 0, stream - 1, (stream,), _text(name))
        for stream, name in zip(STREAMS, FUNCTIONS, strict=True)
    ]
    return [SetNodeCount(2), *streams, *queries]


def _text(function: str) -> str:
    return json.dumps(QueryText({"total": f"sum({function}(size))"}, window_s=10.0).to_json())


def parse_options(arguments: Sequence[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--quiet", type=int, default=60)
    parser.add_argument("--rate", type=float, default=1_500.0, help="of a stream in the overload")
    parser.add_argument("--latency", type=float, default=10.0, help="bound of the p95 latency, s")
    parser.add_argument("--limit", type=float, default=1.0, help="of --former")
    parser.add_argument("--constant", action="store_true", help="quiet rates do not change")
    parser.add_argument("--former", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
