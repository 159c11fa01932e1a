"""Weir against one native Spark query with the same aggregates: records/s from a full log.

    .venv/bin/python -m benchmarks.native_compare [--queries 1 10 100] [--runs 3] [--nodes 8]
        [--key stream | car] [--no-distinct] [--records N] [--seconds 60] [--json]

Every query is count, mean and maximum of the speed per key and minute over all cab records, on 8
nodes, each node with an eighth of every query's keys. Query i takes records of `speed > i` only;
with `--no-distinct` the queries are those of several users who want the same.

The native side is one streaming query with N filtered aggregates, which nobody would write who
adds and removes queries while it runs, but which is the fastest that Spark offers: with Spark's
usual compiler and collector (C2, G1) and 3 GB. With `--native each` it is N streaming queries of
one application. Weir's batches end with the results readable in Redis. The native query writes to
Spark's `noop` sink, so the comparison favours it. Both read the same blocks in batches of the same
number of records, at two splits, in as many partitions. The rate counts from the end of batch
`--warm`; a run that does not end within `--seconds` is measured as far as it came, and marked.
`--check` compares windows of both with a plain computation.

The figure of 1,000 queries (docs/benchmarks.md):
    … --queries 1000 --no-distinct --records 1000000 --native-up-to 0 --runs 1 --seconds 300
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pandas as pd
import redis

from benchmarks import cab_log
from benchmarks.application import Weir
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from tests.support.redis_server import running_redis
from tests.support.whole_results import read_windows
from workers.demo.recording import REPORT

SPLITS: Final = 2
# As many as the cores of the session's master, local[2].
PARTITIONS: Final = 2
LOG: Final = "cabs"
MINUTE_MS: Final = 60_000
# A native batch of one query may take this long to start on a busy machine.
START_SECONDS: Final = 90
Windows = dict[tuple[int, int], tuple[int, float | None, float | None]]


@dataclass(frozen=True)
class Rate:
    """What one run read: records/s of the log once it is warm, and batches."""

    records_per_s: float
    batches: int
    whole: bool


def main() -> None:
    options = parse_options()
    with tempfile.TemporaryDirectory() as name, running_redis(Path(name)) as url:
        records = cab_log.cab_records(options.records)
        options.total = len(records)
        cab_log.fill(url, LOG, records)
        if options.check:
            check(url, Path(name), options, records)
        rows = [row for n in options.queries for row in compared(url, Path(name), options, n)]
    print(json.dumps(rows, indent=2) if options.json else table(rows))


def compared(url: str, folder: Path, options: argparse.Namespace, queries: int) -> list[Any]:
    """Run both for a number of queries, in turn; return a row of medians."""
    weir, native = [], []
    for run in range(options.runs):
        place = folder / f"{queries}-{run}"
        weir.append(weir_rate(url, place / "weir", options, queries))
        if queries <= options.native_up_to:
            native.append(native_rate(url, place / "native", options, queries))
    return [{"queries": queries, "weir": _median(weir), "native": _median(native)}]


def _median(runs: Sequence[Rate]) -> Any:
    if not runs:
        return None
    middle = statistics.median_low([run.records_per_s for run in runs])
    chosen = next(run for run in runs if run.records_per_s == middle)
    return {**asdict(chosen), "runs": [round(run.records_per_s) for run in runs]}


def text_of(query: int, options: argparse.Namespace) -> QueryText:
    """Return the query of user number `query`."""
    return QueryText(
        {"n": "count(*)", "mean": "mean(speed)", "highest": "max(speed)"},
        window_s=60.0,
        lateness_s=300.0,
        where=f"speed > {query}" if options.distinct else "",
        key=[options.key],
    )


def weir_rate(url: str, folder: Path, options: argparse.Namespace, queries: int) -> Rate:
    """Let Weir's pipeline read a copy of the log."""
    client = redis.Redis.from_url(url)
    with started_weir(url, folder, options, queries) as weir:
        rows = weir.batches_until(options.total, START_SECONDS + options.seconds)
        whole = sum(row["in"] for row in rows) >= options.total
    cab_log.drop_cluster(client, weir.cluster)
    ends = [row["emitted_ms"] / 1000 for row in rows]
    batches = list(zip(ends, (row["in"] for row in rows), strict=True))
    return _rate([batches], options.warm, whole)


def started_weir(url: str, folder: Path, options: argparse.Namespace, queries: int) -> Weir:
    """Publish the queries, each split over all nodes, and start the pipeline on a full log."""
    client = redis.Redis.from_url(url)
    cluster = "weir"
    cab_log.drop_cluster(client, cluster)
    cab_log.copy_log(client, LOG, cluster)
    streams = tuple(range(1, cab_log.STREAMS + 1))
    task_ranges = tuple((node, node, node + 1) for node in range(options.nodes))
    adds = [
        AddQuery(query + 1, 0, 0, streams,
                 json.dumps(text_of(query, options).to_json()), task_ranges)
        for query in range(queries)
    ]  # fmt: skip
    splits: list[Action] = [AssignStream(stream, stream % SPLITS) for stream in streams]
    splits += [SetSchema(stream, REPORT) for stream in streams]
    publish(client, cluster, RoutingDelta(1, (*splits, *adds)))
    return Weir(url, folder, cluster, options.nodes, SPLITS, options.max_records)


def native_rate(url: str, folder: Path, options: argparse.Namespace, queries: int) -> Rate:
    """Let native queries read the log."""
    report = native(url, folder, options, queries, [])
    batches = [
        [(batch_end(batch), batch["numInputRows"]) for batch in rows if batch["numInputRows"]]
        for rows in report["batches"]
    ]
    whole = all(sum(n for _, n in rows) >= options.total for rows in batches)
    return _rate(batches, options.warm, whole)


def batch_end(batch: dict[str, Any]) -> float:
    """Return the end of a batch in seconds, from the progress that Spark reports."""
    began = datetime.fromisoformat(batch["timestamp"]).timestamp()
    return began + float(batch["durationMs"]["triggerExecution"]) / 1000


def _rate(queries: Sequence[Sequence[tuple[float, int]]], warm: int, whole: bool) -> Rate:
    """Return records of the log per second that all queries have seen, from (end, records)."""
    if not all(len(rows) > warm for rows in queries):
        return Rate(0.0, 0, whole=False)
    # From when every query has its first batches behind it.
    began = max(rows[warm - 1][0] for rows in queries)
    later = [(end, n) for rows in queries for end, n in rows if end > began]
    span = max((end for end, _ in later), default=began) - began
    seen = sum(n for _, n in later) / len(queries)
    return Rate(seen / span if span else 0.0, len(later), whole)


def native(
    url: str, folder: Path, options: argparse.Namespace, queries: int, sample: Sequence[int]
) -> Any:
    """Run native queries in an application of their own; return what it prints."""
    settings = {
        "redis-url": url, "cluster": LOG, "checkpoint": folder, "queries": queries,
        "streams": cab_log.STREAMS, "splits": SPLITS, "partitions": PARTITIONS,
        "max-records": options.max_records, "records": options.total, "key": options.key,
        "seconds": options.seconds + START_SECONDS,
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.native_query"]
    command += [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    command += ["--distinct"] if options.distinct else []
    # A checked run looks at the windows of one plain query.
    command += ["--combined"] if options.native == "one" and not sample else []
    command += ["--sample", *map(str, sample)] if sample else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def check(url: str, folder: Path, options: argparse.Namespace, records: pd.DataFrame) -> None:
    """Raise unless Weir, the native query and pandas agree on windows here and there."""
    minutes = records.ts.astype("int64") // MINUTE_MS * MINUTE_MS
    whole = minutes.drop_duplicates().iloc[1:-1]
    sample = whole.iloc[:: max(1, len(whole) // 50)].tolist()
    expected = expected_windows(records.assign(start=minutes), options, set(sample))
    seen = native(url, folder / "check-native", options, 1, sample)["seen"]
    from_native = {(start, key): _rounded(*values) for start, key, *values in seen}
    with started_weir(url, folder / "check-weir", options, 1) as weir:
        weir.batches_until(options.total, START_SECONDS + options.seconds)
        from_weir = weir_windows(url, weir.cluster, options, sample)
    for name, windows in (("native", from_native), ("weir", from_weir)):
        if windows != expected:
            wrong = [
                place
                for place in {*windows, *expected}
                if windows.get(place) != expected.get(place)
            ]
            raise AssertionError(
                f"{name}: {len(wrong)} of {len(expected)} windows differ: {wrong[:5]}"
            )
    print(f"checked: {len(expected)} windows are the same three times", file=sys.stderr)


def expected_windows(rows: pd.DataFrame, options: argparse.Namespace, sample: set[int]) -> Windows:
    """Return the windows of query 0 by a plain grouping."""
    sampled = rows[rows.start.isin(sample) & ((rows.speed > 0) | (not options.distinct))]
    grouped = sampled.groupby(["start", options.key]).agg(
        n=("ts", "size"), mean=("speed", "mean"), highest=("speed", "max")
    )
    return {
        (start, key): _rounded(n, mean, highest)
        for (start, key), n, mean, highest in grouped.itertuples()
    }


def _rounded(n: int, mean: float | None, highest: float | None) -> Any:
    nothing = mean is None or pd.isna(mean)
    return (int(n), None, None) if nothing else (int(n), round(mean or 0, 6), int(highest or 0))


def weir_windows(
    url: str, cluster: str, options: argparse.Namespace, sample: Sequence[int]
) -> Windows:
    """Return the sampled windows of query 1 as Weir's readers would show them."""
    client = redis.Redis.from_url(url)
    computation = computation_of(text_of(0, options), REPORT.kinds)
    windows = [row for row in read_windows(client, cluster, 1, computation)
               if row.start_ms in sample]  # fmt: skip
    return {
        (row.start_ms, row.key[options.key]): _rounded(
            row.values["n"], row.values["mean"], row.values["highest"]
        )
        for row in windows
    }


def table(rows: Sequence[Any]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| queries | Weir, records/s | native, records/s | Weir / native |",
        "|---|---|---|---|",
    ]
    for row in rows:
        weir, native = row["weir"], row["native"]
        ratio = weir["records_per_s"] / native["records_per_s"] if native else None
        lines.append(
            f"| {row['queries']} | {_shown(weir)} | {_shown(native)} "
            f"| {'-' if ratio is None else f'{ratio:.2f}'} |"
        )
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if value is None:
        return "not run"
    return f"{value['records_per_s']:,.0f}" + ("" if value["whole"] else " (part of the log)")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.native_compare", description=__doc__)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--key", choices=["car", "stream"], default="stream")
    parser.add_argument("--distinct", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--native", choices=["one", "each"], default="one")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--warm", type=int, default=4, help="first batches that do not count")
    parser.add_argument("--records", type=int, help="of the log; default all")
    parser.add_argument("--max-records", type=int, default=200_000, help="of a batch")
    parser.add_argument("--seconds", type=int, default=60, help="per run, without its start")
    parser.add_argument("--native-up-to", type=int, default=100, help="queries run natively")
    parser.add_argument("--check", action="store_true", help="compare windows first")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
