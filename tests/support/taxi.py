"""Real taxi reports as records of streams."""

from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.schemas import REPORTS

EVENTS: Final = Path(__file__).parents[3] / "shared" / "data" / "cab_sf_events.parquet"
STREAMS: Final = 20


def taxi_reports(limit: int) -> list[dict[int, pa.RecordBatch]]:
    """Return real reports, per minute and stream: a busy tile; speed from the car's last report."""
    rows = pq.read_table(EVENTS).slice(0, limit).to_pandas()
    rows["x"], rows["y"] = rows.tile_x.astype("int32") * 100, rows.tile_y.astype("int32") * 100
    before = rows.groupby("car")[["ts", "x", "y"]].shift()
    seconds = (rows.ts - before.ts).dt.total_seconds()
    metres = np.hypot(rows.x - before.x, rows.y - before.y)
    rows["speed"] = (100 * metres / seconds.where(seconds.between(1, 300))).round()
    tile = rows.tile_x // 10 * 1000 + rows.tile_y // 10
    rank = {t: i + 1 for i, t in enumerate(tile.value_counts().index[:STREAMS])}
    rows["stream"] = tile.map(rank)
    rows = rows.dropna(subset=["stream"]).astype({"stream": int})
    return _split(rows)


def _split(rows: pd.DataFrame) -> list[dict[int, pa.RecordBatch]]:
    """Return slices of one batch, per minute and stream, streams in the order of their rows.

    A data frame for each of 17,500 slices would take half a minute.
    """
    minutes = rows.ts.dt.floor("1min").astype("int64").to_numpy()
    streams = rows.stream.to_numpy()
    order = np.lexsort((streams, minutes))
    minutes, streams = minutes[order], streams[order]
    changed = (minutes[1:] != minutes[:-1]) | (streams[1:] != streams[:-1])
    edges = [0, *(np.flatnonzero(changed) + 1).tolist(), len(rows)]
    batch = _batch(rows.iloc[order])
    parts: dict[int, list[tuple[int, int, int, int]]] = {}
    for start, stop in pairwise(edges):
        part = (int(order[start]), int(streams[start]), start, stop)
        parts.setdefault(int(minutes[start]), []).append(part)
    return [
        {stream: batch.slice(start, stop - start) for _, stream, start, stop in sorted(part)}
        for _, part in sorted(parts.items())
    ]


def _batch(rows: pd.DataFrame) -> pa.RecordBatch:
    rows = rows.assign(ts=rows.ts.astype("datetime64[ms, UTC]"))
    columns = [pa.array(rows[f.name], f.type, from_pandas=True) for f in REPORTS.arrow]
    return pa.RecordBatch.from_arrays(columns, schema=REPORTS.arrow)
