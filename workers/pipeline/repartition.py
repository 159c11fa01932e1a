"""Change the Spark partitions of a stopped application: `python -m workers.pipeline.repartition …`.

Spark fixes the number of state partitions when a checkpoint is begun. It should be that of the
executors' cores; nodes share partitions, and their number does not depend on it. To change it, a
new checkpoint is made that begins where the old one ended: a batch that was begun is finished
first, as it was planned; then the state of every node is read with Spark's own reader and written
down as the bootstrap of the new checkpoint. Batch numbers, place in the log and routing version
continue, so nothing is read twice or left out. The old checkpoint is kept under another name.
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

from controlplane.formats.log_lines import write_log_to_stderr
from controlplane.wire import keys
from controlplane.wire.routing.publication import read_table
from workers.pipeline.application import Application, prepare
from workers.pipeline.checkpoints.bootstrap import BootstrapWriter, has_pending_bootstrap
from workers.pipeline.checkpoints.files import (
    AlreadyRunning,
    Checkpoint,
    CheckpointUnusable,
    create_draft,
    exclusive_lock,
    finish_swap,
    swap,
)
from workers.pipeline.spark.connections import client_of
from workers.pipeline.spark.partition_keys import node_keys
from workers.pipeline.spark.session import session
from workers.pipeline.surroundings import SettingMissing, surroundings

logger = logging.getLogger("weir.pipeline")

# A driver beats every two seconds.
_SILENT_SECONDS: Final = 10.0


class RepartitionRejected(Exception):
    """The number of partitions cannot be changed now."""


@dataclass(frozen=True)
class RepartitionRequest:
    """The request for another number of partitions."""

    cluster: str
    redis_url: str = field(repr=False)
    checkpoint: Path
    partitions: int
    log_url: str = field(default="", repr=False)
    results_url: str = field(default="", repr=False)


@dataclass
class RepartitionResult:
    """What was done: the batch after which it continues, and the bytes of state of each node."""

    before: int
    partitions: int
    batch: int
    kept: Path | None = None
    nodes: dict[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.kept is None:
            return f"{self.before} partitions could become {self.partitions}; nothing was changed"
        state = ", ".join(f"node {node}: {size:,}" for node, size in self.nodes.items())
        return (
            f"{self.before} partitions became {self.partitions} behind batch {self.batch}; "
            f"bytes of state: {state or 'none'}; the checkpoint before is kept as {self.kept}"
        )


def repartition(plan: RepartitionRequest, *, dry_run: bool = False) -> RepartitionResult:
    """Change the number of partitions.

    Raises `RepartitionRejected`, `AlreadyRunning` or `CheckpointUnusable`.
    """
    with exclusive_lock(plan.checkpoint):
        finish_swap(plan.checkpoint)
        result = _checked(plan)
        outcome = RepartitionResult(result.partitions, plan.partitions, result.offset["batch"])
        return outcome if dry_run else _repartition(plan, result)


def _repartition(plan: RepartitionRequest, checkpoint: Checkpoint) -> RepartitionResult:
    spark = session(plan.cluster, checkpoint.partitions)
    try:
        if checkpoint.pending is not None:
            _finish_batch(spark, plan, checkpoint)
            checkpoint = Checkpoint.read(plan.checkpoint)
        outcome = RepartitionResult(
            checkpoint.partitions, plan.partitions, checkpoint.offset["batch"]
        )
        draft = create_draft(plan.checkpoint)
        outcome.nodes = _write_seed(spark, checkpoint, draft, plan.partitions)
    finally:
        spark.stop()
    outcome.kept = _free_name(
        plan.checkpoint, f"{checkpoint.partitions}-partitions-{outcome.batch}"
    )
    swap(plan.checkpoint, draft, outcome.kept)
    return outcome


def _free_name(checkpoint: Path, suffix: str) -> Path:
    """Return a free name for the old checkpoint."""
    ends = chain([""], (f"-{again}" for again in count(2)))
    names = (checkpoint.with_name(f"{checkpoint.name}.{suffix}{end}") for end in ends)
    return next(path for path in names if not path.exists())


def _checked(plan: RepartitionRequest) -> Checkpoint:
    client = client_of(plan.redis_url)
    _check_silence(client, plan.cluster)
    if has_pending_bootstrap(plan.checkpoint):
        raise RepartitionRejected(
            "the application has not run since the last change: start it, then stop it"
        )
    result = Checkpoint.read(plan.checkpoint)
    if result.partitions == plan.partitions:
        raise RepartitionRejected(f"the checkpoint has {plan.partitions} partitions already")
    return result


def _check_silence(client: "redis.Redis", cluster: str) -> None:
    """Raise `RepartitionRejected` if a driver on any machine has a recent heartbeat."""
    result: Any = client.hmget(keys.driver_key(cluster), ["state", "beat_ms"])
    state, beat_ms = result
    if beat_ms is None or state in {b"stopped", b"failed"}:
        return
    silent = time.time() - int(beat_ms) / 1000
    if silent < _SILENT_SECONDS:
        raise RepartitionRejected(
            f"a driver was heard of {silent:.0f} s ago: stop the cluster first"
        )


def _finish_batch(spark: SparkSession, plan: RepartitionRequest, checkpoint: Checkpoint) -> None:
    """Run the unfinished batch, as Spark does after a crash, and no other."""
    assert checkpoint.pending is not None
    table = read_table(client_of(plan.redis_url), plan.cluster, checkpoint.pending["version"])
    splits = max(table.split_count, max(table.splits.values(), default=0) + 1)
    application = Application(
        plan.cluster,
        plan.redis_url,
        str(plan.checkpoint),
        checkpoint.partitions,
        max(checkpoint.partitions, table.node_count),
        splits,
        log_url=plan.log_url,
        results_url=plan.results_url,
    )
    logger.info("batch %s was begun: it is finished first", checkpoint.pending["batch"])
    prepare(spark, application, once=True).start().awaitTermination()


def _write_seed(
    spark: SparkSession, checkpoint: Checkpoint, draft: Path, partitions: int
) -> dict[int, int]:
    """Write the state of every node; return its bytes by node."""
    writer, sizes = BootstrapWriter(draft), dict[int, int]()
    nodes = node_keys(checkpoint.partitions)
    # A partition's rows come in the order of their keys, so one node's values come together.
    for key, rows in groupby(_values(spark, checkpoint), lambda row: int(row["key"]["nk"])):
        node = nodes.node_of(key)
        values = ((row["name"], bytes(row["value"])) for row in rows)
        sizes[node] = writer.write(node, values)
    writer.finish(partitions, checkpoint.offset)
    return sizes


def _values(spark: SparkSession, checkpoint: Checkpoint) -> Iterator[Any]:
    state = (
        spark.read.format("statestore")
        .option("operatorId", 0)
        .option("stateVarName", "values")
        .option("batchId", checkpoint.committed)
        .load(str(checkpoint.path))
    )
    columns = ("key", "user_map_key.name AS name", "user_map_value.value AS value")
    return state.selectExpr(*columns).toLocalIterator()


def main(arguments: Sequence[str] | None = None) -> int:
    """Change the number of partitions; return 0, or 1 where that is refused."""
    options = _parse(arguments)
    write_log_to_stderr()
    try:
        given = surroundings()
        plan = RepartitionRequest(
            options.cluster, given.redis_url, options.checkpoint, options.partitions,
            given.log_url, given.results_url,
        )  # fmt: skip
        outcome = repartition(plan, dry_run=options.dry_run)
    except (RepartitionRejected, AlreadyRunning, CheckpointUnusable, SettingMissing) as refusal:
        logger.error("%s", refusal)
        return 1
    logger.info("%s", outcome)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="workers.pipeline.repartition", description=__doc__)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--partitions", required=True, type=_partitions)
    parser.add_argument("--dry-run", action="store_true", help="only check whether it is possible")
    return parser.parse_args(arguments)


def _partitions(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
