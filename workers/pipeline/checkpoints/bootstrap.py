"""The bootstrap of a checkpoint: an offset and the state of all nodes, from an earlier one.

`repartition` writes it into the new checkpoint's directory. The source begins at the offset, and
every node puts its state into its store at the beginning of the first batch. A replay of that
batch begins with an empty store and reads the same files. Once it is whole they are not needed.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.generation import read_generation
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import Log, LogPosition, position_key
from workers.pipeline.checkpoints.files import (
    SEED,
    SEED_TABLE,
    WrongPartitions,
    fsync_path,
    has_begun,
    partitions_of,
)
from workers.pipeline.engine.store import Store
from workers.pipeline.reports.telemetry_row import newest_telemetry

# Batches that the lost checkpoint may have written beyond its last telemetry row.
_MARGIN: Final = 1000
_START: Final = "start.json"
_FIELDS: Final[Mapping[str, pa.DataType]] = {"name": pa.string(), "value": pa.binary()}
_VALUES: Final = pa.schema(_FIELDS)


class BootstrapDamaged(Exception):
    """A file of a seed does not hold what was written."""


@dataclass(frozen=True)
class Bootstrap:
    """A seed on disk.

    `offset`: the last batch of the checkpoint before, as its source wrote it; `values`: by node,
    how many values its store held.
    """

    folder: str
    partitions: int
    offset: Mapping[str, Any]
    values: Mapping[int, int]

    def import_state(self, store: Store, node: int, batch: int) -> None:
        """Write a node's state to its store in the first batch. Raises `BootstrapDamaged`."""
        if batch != self.offset["batch"] + 1 or not self.values.get(node):
            return
        planted = 0
        with _file(Path(self.folder), node).open("rb") as file:
            for rows in pa.ipc.open_stream(file):
                for row in rows.to_pylist():
                    store.put(row["name"], row["value"])
                    planted += 1
        if planted != self.values[node]:
            wanted = self.values[node]
            raise BootstrapDamaged(
                f"{planted} of {wanted} values of node {node} are in {self.folder}"
            )


def read_bootstrap(checkpoint: Path, partitions: int) -> Bootstrap | None:
    """Return the seed that the checkpoint still needs; drop one that it does not.

    Raises `WrongPartitions` if the checkpoint, or its seed, is for another number of them.
    """
    folder = checkpoint / SEED
    there = partitions_of(checkpoint)
    if there is not None and there != partitions:
        raise WrongPartitions(checkpoint, there, partitions)
    if not folder.exists():
        return None
    if has_begun(checkpoint):
        shutil.rmtree(folder)
        return None
    row = json.loads((folder / SEED_TABLE).read_text())
    if row["partitions"] != partitions:
        raise WrongPartitions(checkpoint, row["partitions"], partitions)
    values = {int(node): count for node, count in row["values"].items()}
    return Bootstrap(str(folder), partitions, row["offset"], values)


def has_pending_bootstrap(checkpoint: Path) -> bool:
    """Return whether the checkpoint has a seed that no batch has imported."""
    return (checkpoint / SEED).exists() and not has_begun(checkpoint)


class BootstrapWriter:
    """Writes a seed into a new checkpoint's directory; nothing counts before `finish`."""

    def __init__(self, checkpoint: Path) -> None:
        self._folder = checkpoint / SEED
        self._folder.mkdir(parents=True)
        self._values: dict[int, int] = {}

    def write(self, node: int, values: Iterable[tuple[str, bytes]]) -> int:
        """Write the state of a node, once per node, and return its bytes."""
        count = size = 0
        path = _file(self._folder, node)
        with path.open("xb") as file, pa.ipc.new_stream(file, _VALUES) as stream:
            for name, value in values:
                row: dict[str, list[Any]] = {"name": [name], "value": [value]}
                stream.write(pa.RecordBatch.from_pydict(row, schema=_VALUES))
                count, size = count + 1, size + len(value)
        self._values[node] = count
        fsync_path(path)
        return size

    def finish(self, partitions: int, offset: Mapping[str, Any]) -> None:
        """Write the table of contents; from here on the bootstrap survives a loss of power."""
        table = self._folder / SEED_TABLE
        row = {"partitions": partitions, "offset": dict(offset), "values": self._values}
        table.write_text(json.dumps(row))
        for path in (table, self._folder, self._folder.parent):
            fsync_path(path)


def _file(folder: Path, node: int) -> Path:
    return folder / f"{node}.arrow"


def kept_start(checkpoint: Path, find: Callable[[], Mapping[str, Any]]) -> str:
    """Return the offset at which a checkpoint begins, as JSON; "" once its first batch is whole.

    It is found once, before the first batch is planned: a driver that was killed in that batch runs
    it again, when Redis may have its telemetry row, behind which another checkpoint would begin.
    """
    path = checkpoint / _START
    if has_begun(checkpoint):
        path.unlink(missing_ok=True)
        return ""
    if partitions_of(checkpoint) is None:
        checkpoint.mkdir(parents=True, exist_ok=True)
        written = path.with_suffix(".tmp")
        written.write_text(json.dumps(find()))
        fsync_path(written)
        written.replace(path)
        fsync_path(checkpoint)
    return path.read_text() if path.exists() else ""


def first_batch(client: "redis.Redis", cluster: str) -> int:
    """Return the batch number before the first batch of a new checkpoint; 0 for a new cluster.

    Explicit stream ids `<batch>-<seq>` reject what was written before; a new checkpoint must
    therefore count on behind everything that an old one may have written.
    """
    newest = newest_telemetry(client, cluster, 1)
    known = max(
        int(newest[0].get("batch", 0) if newest else 0), read_generation(client, cluster).floor
    )
    return known + _MARGIN if known else 0


def first_delays(client: "redis.Redis", cluster: str, position: str) -> dict[str, str]:
    """Return the delayed streams of a new checkpoint that starts where the newest batch ended."""
    newest = newest_telemetry(client, cluster, 1)
    if not newest or newest[0].get("end") != position:
        return {}
    return {str(stream): place for stream, place in newest[0].get("delayed", {}).items()}


def first_cuts(client: "redis.Redis", cluster: str) -> dict[str, Any]:
    """Return how far the newest batch has read the sources, for a new checkpoint.

    Without it, each source starts as declared, a topic where its consumer group is.
    """
    newest = newest_telemetry(client, cluster, 1)
    return dict(newest[0].get("sources", {})) if newest else {}


def first_position(client: "redis.Redis", cluster: str, log: Log) -> LogPosition:
    """Return the start position of a new checkpoint: the end of the newest finished batch.

    Spark marks a batch as committed when it plans the next one, so the newest finished batch may
    end behind what is marked; read again, its records would count twice. If the log cannot find
    how many records that are, as Kafka cannot, the marked place holds.
    """
    committed = log.committed_position()
    newest = newest_telemetry(client, cluster, 1)
    end = (newest and newest[0].get("end")) or committed.position
    if position_key(end) <= position_key(committed.position):
        return committed
    if not isinstance(log, RedisLog):
        return committed
    result: Any = client.xrevrange(keys.index_key(cluster), end, "-", count=1)
    if not result or result[0][0].decode() != end:
        # Redis was emptied or is older: whatever it has now came later.
        return committed
    return LogPosition(end, int(result[0][1][b"total"]))
