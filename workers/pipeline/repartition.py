"""Give a stopped application another number of slots: `python -m workers.pipeline.repartition …`.

Spark fixes the number of state partitions, which are Weir's nodes, when a checkpoint is begun. So
a new checkpoint is made that begins where the old one ended: a batch that was begun is finished
first, as it was planned; then the state of every node is read with Spark's own reader and written
down as the seed of the new checkpoint. Batch numbers, place in the log and routing version go on,
so nothing is read twice or left out. The old checkpoint is kept under another name.
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, groupby
from pathlib import Path
from typing import Any, Final

import redis
from pyspark.sql import SparkSession

from controlplane.wire import keys
from controlplane.wire.publish import latest_version, read_table
from controlplane.wire.routing import NOBODY, RoutingTable
from workers.pipeline.application import Application, start
from workers.pipeline.checkpoint import Checkpoint, CheckpointUnusable
from workers.pipeline.connections import client_of
from workers.pipeline.ownership import AlreadyRunning, sole_owner
from workers.pipeline.salt import node_of_key
from workers.pipeline.seed import SeedWriter, is_waiting
from workers.pipeline.session import session
from workers.pipeline.swap import draft_of, settle, swap

logger = logging.getLogger("weir.pipeline")

# A driver beats every two seconds.
_SILENT_SECONDS: Final = 10.0


class Refused(Exception):
    """The number of slots cannot be changed now."""


@dataclass(frozen=True)
class Plan:
    """What is asked for."""

    cluster: str
    redis_url: str
    checkpoint: Path
    slots: int
    log_url: str = ""


@dataclass
class Outcome:
    """What was done: the batch after which it goes on, and the bytes of state of each node."""

    before: int
    slots: int
    batch: int
    kept: Path | None = None
    nodes: dict[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.kept is None:
            return f"{self.before} slots could become {self.slots}; nothing was changed"
        state = ", ".join(f"node {node}: {size:,}" for node, size in self.nodes.items())
        return (
            f"{self.before} slots became {self.slots} behind batch {self.batch}; bytes of state: "
            f"{state or 'none'}; the checkpoint before is kept as {self.kept}"
        )


def repartition(plan: Plan, *, dry_run: bool = False) -> Outcome:
    """Change the number of slots. Raises `Refused`, `AlreadyRunning`, `CheckpointUnusable`."""
    with sole_owner(plan.checkpoint):
        settle(plan.checkpoint)
        found = _checked(plan)
        outcome = Outcome(found.slots, plan.slots, found.offset["batch"])
        return outcome if dry_run else _carry_out(plan, found)


def _carry_out(plan: Plan, found: Checkpoint) -> Outcome:
    spark = session(plan.cluster, found.slots)
    try:
        if found.pending is not None:
            _finish(spark, plan, found)
            found = Checkpoint.read(plan.checkpoint)
        outcome = Outcome(found.slots, plan.slots, found.offset["batch"])
        draft = draft_of(plan.checkpoint)
        outcome.nodes = _write_seed(spark, found, draft, plan.slots)
    finally:
        spark.stop()
    outcome.kept = _free_name(plan.checkpoint, f"{found.slots}-slots-{outcome.batch}")
    swap(plan.checkpoint, draft, outcome.kept)
    return outcome


def _free_name(checkpoint: Path, suffix: str) -> Path:
    """Return where the old checkpoint is kept; what is kept already is not touched."""
    ends = chain([""], (f"-{again}" for again in count(2)))
    names = (checkpoint.with_name(f"{checkpoint.name}.{suffix}{end}") for end in ends)
    return next(path for path in names if not path.exists())


def _checked(plan: Plan) -> Checkpoint:
    client = client_of(plan.redis_url)
    _check_silence(client, plan.cluster)
    if is_waiting(plan.checkpoint):
        raise Refused("the application has not run since the last change: start it, then stop it")
    found = Checkpoint.read(plan.checkpoint)
    if found.slots == plan.slots:
        raise Refused(f"the checkpoint has {plan.slots} slots already")
    _check_fit(client, plan, found)
    return found


def _check_silence(client: "redis.Redis", cluster: str) -> None:
    """Raise `Refused` where a driver, maybe on another machine, was heard of just now."""
    found: Any = client.hmget(keys.driver_key(cluster), ["state", "beat_ms"])
    state, beat_ms = found
    if beat_ms is None or state in {b"stopped", b"failed"}:
        return
    silent = time.time() - int(beat_ms) / 1000
    if silent < _SILENT_SECONDS:
        raise Refused(f"a driver was heard of {silent:.0f} s ago: stop the cluster first")


def _check_fit(client: "redis.Redis", plan: Plan, found: Checkpoint) -> None:
    """Raise `Refused` where a node that is to go has something to do.

    That counts under every version that a batch to come looks at: that of the last batch, the one
    from which tasks handed their state on in it, and the newest.
    """
    end = found.pending or found.offset
    versions = {end["version"], end.get("before"), latest_version(client, plan.cluster)} - {None}
    for version in sorted(versions):
        table = read_table(client, plan.cluster, version)
        left = {node: query for query, node in _homes(table) if node >= plan.slots}
        if left:
            told = ", ".join(f"node {node} (query {query}, …)" for node, query in left.items())
            raise Refused(
                f"in routing version {version} tasks are on {told}, which {plan.slots} slots "
                f"leave no room for: move them, and let the application apply it"
            )


def _homes(table: RoutingTable) -> Iterator[tuple[int, int]]:
    for query, route in table.queries.items():
        for node in {*route.owners(), route.merge} - {NOBODY}:
            yield query, node


def _finish(spark: SparkSession, plan: Plan, found: Checkpoint) -> None:
    """Run the batch that was begun, as Spark does after a crash, and no other."""
    assert found.pending is not None
    table = read_table(client_of(plan.redis_url), plan.cluster, found.pending["version"])
    splits = max(table.splits.values(), default=0) + 1
    application = Application(
        plan.cluster,
        plan.redis_url,
        str(plan.checkpoint),
        found.slots,
        splits,
        log_url=plan.log_url,
    )
    logger.info("batch %s was begun: it is finished first", found.pending["batch"])
    start(spark, application, once=True).awaitTermination()


def _write_seed(spark: SparkSession, found: Checkpoint, draft: Path, slots: int) -> dict[int, int]:
    """Write the state of every node that is to stay; return its bytes by node."""
    writer, sizes = SeedWriter(draft), dict[int, int]()
    nodes = node_of_key(found.slots)
    # Partition after partition, so one node's values come together, and one page at a time.
    for key, rows in groupby(_values(spark, found), lambda row: int(row["key"]["nk"])):
        if nodes[key] < slots:
            values = ((row["name"], bytes(row["value"])) for row in rows)
            sizes[nodes[key]] = writer.write(nodes[key], values)
    writer.finish(slots, found.offset)
    return sizes


def _values(spark: SparkSession, found: Checkpoint) -> Iterator[Any]:
    state = (
        spark.read.format("statestore")
        .option("operatorId", 0)
        .option("stateVarName", "values")
        .option("batchId", found.committed)
        .load(str(found.path))
    )
    columns = ("key", "user_map_key.name AS name", "user_map_value.value AS value")
    return state.selectExpr(*columns).toLocalIterator()


def main(arguments: Sequence[str] | None = None) -> int:
    """Change the number of slots; return 0, or 1 where that is refused."""
    options = _parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # It tells of every connection.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    plan = Plan(
        options.cluster, options.redis_url, options.checkpoint, options.slots, options.log_url
    )
    try:
        outcome = repartition(plan, dry_run=options.dry_run)
    except (Refused, AlreadyRunning, CheckpointUnusable) as refusal:
        logger.error("%s", refusal)
        return 1
    logger.info("%s", outcome)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="workers.pipeline.repartition", description=__doc__)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--redis-url", required=True)
    parser.add_argument("--log-url", default="", help="as the application has it")
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--slots", required=True, type=_slots)
    parser.add_argument("--dry-run", action="store_true", help="only say whether it can be done")
    return parser.parse_args(arguments)


def _slots(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
