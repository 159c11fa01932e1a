"""One log with recorded taxi reports, filled once and copied for every run that reads it.

The records are those of the tests (`tests/workers/pipeline/test_exactly_once.py`): the speed comes
from the car's report before. Streams are the busiest tiles of a kilometre, and one for all others.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import redis

from controlplane.wire import keys
from controlplane.wire.producer import Producer
from workers.demo.recording import REPORT

EVENTS: Final = Path(__file__).parents[2] / "shared" / "data" / "cab_sf_events.parquet"
STREAMS: Final = 20
# With 20 streams a block has about a thousand records, which `docs/producers.md` recommends.
APPEND_RECORDS: Final = 20_000


def cab_records(limit: int | None = None) -> pd.DataFrame:
    """Return the reports in the order of time: a record's columns, and `stream` 1..STREAMS."""
    rows = pq.read_table(EVENTS).slice(0, limit).to_pandas()
    rows["x"], rows["y"] = rows.tile_x.astype("int32") * 100, rows.tile_y.astype("int32") * 100
    before = rows.groupby("car")[["ts", "x", "y"]].shift()
    seconds = (rows.ts - before.ts).dt.total_seconds()
    metres = np.hypot(rows.x - before.x, rows.y - before.y)
    rows["speed"] = (100 * metres / seconds.where(seconds.between(1, 300))).round()
    tile = rows.tile_x // 10 * 1000 + rows.tile_y // 10
    busiest = {
        name: number
        for number, name in enumerate(tile.value_counts().index[: STREAMS - 1], start=1)
    }
    rows["stream"] = tile.map(busiest).fillna(STREAMS).astype("int64")
    return rows[[*REPORT.arrow.names, "stream"]]


def fill(redis_url: str, cluster: str, records: pd.DataFrame) -> None:
    """Append all records, as a producer does that replays as fast as it can."""
    schemas = dict.fromkeys(range(1, STREAMS + 1), REPORT)
    with Producer(redis_url, cluster, limit=len(records) + 1, schemas=schemas) as producer:
        for first in range(0, len(records), APPEND_RECORDS):
            producer.append(dict(_blocks(records.iloc[first : first + APPEND_RECORDS])))


def _blocks(rows: pd.DataFrame) -> Iterator[tuple[int, pa.RecordBatch]]:
    for stream, of_stream in rows.groupby("stream"):
        columns = [
            pa.array(of_stream[field.name], field.type, from_pandas=True) for field in REPORT.arrow
        ]
        yield int(str(stream)), pa.RecordBatch.from_arrays(columns, schema=REPORT.arrow)


def copy_log(client: "redis.Redis", source: str, target: str) -> None:
    """Give a cluster of its own the whole log of another; a pipeline trims what it has read."""
    for key in (keys.index_key, keys.newest_key):
        client.copy(key(source), key(target), replace=True)
    for stream in range(1, STREAMS + 1):
        client.copy(keys.log_key(source, stream), keys.log_key(target, stream), replace=True)


def drop_cluster(client: "redis.Redis", cluster: str) -> None:
    """Remove everything a cluster keeps."""
    names: list[Any] = list(client.scan_iter(f"{keys.cluster_prefix(cluster)}*", count=1000))
    for first in range(0, len(names), 1000):
        client.unlink(*names[first : first + 1000])
