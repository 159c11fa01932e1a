"""What a test knows by itself: every append with its position, every table it published."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import redis

from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from tests.support.schemas import REPORTS
from tests.support.whole_results import read_windows
from tests.workers.pipeline.engine.differential.queries import found_windows
from tests.workers.pipeline.engine.differential.test_queries import compare
from tests.workers.pipeline.schedules.queries import Asked, expected
from workers.pipeline.engine.evaluation.drop_rules import is_dropped, sample_hashes
from workers.pipeline.shedding.drops import LadderDrops


def order(position: str) -> tuple[int, int]:
    """Return a position as numbers, which compare as positions do."""
    ms, sequence = position.split("-")
    return int(ms), int(sequence)


def _ends(batches: list[dict[str, Any]], stream: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Return up to where each batch has read a stream: its split node may be behind the log."""
    ends = [order(batch["delayed"].get(str(stream), batch["end"])) for batch in batches]
    return np.array([ms * 1_000_000 + sequence for ms, sequence in ends])


# More than there are streams: version and stream in one number.
_STREAMS = 1_000


@dataclass
class World:
    """The input of a cluster and its routing, as they were acknowledged."""

    client: "redis.Redis"
    cluster: str
    blocks: list[pd.DataFrame] = field(default_factory=list)
    tables: list[RoutingTable] = field(default_factory=lambda: [RoutingTable()])
    newest: dict[int, int] = field(default_factory=dict)
    last: str = "0-0"

    @property
    def table(self) -> RoutingTable:
        """Return the newest table."""
        return self.tables[-1]

    def publish(self, ops: Iterable[Action]) -> None:
        """Publish the next version, if it changes anything."""
        delta = RoutingDelta(len(self.tables), tuple(ops))
        if delta.actions:
            after = self.tables[-1].apply(delta)
            publish(self.client, self.cluster, delta)
            self.tables.append(after)

    def append(self, producer: Producer, batches: dict[int, pa.RecordBatch]) -> None:
        """Append, and write down what is in the log now, each record with its mark."""
        position = producer.append(batches)
        if position is None:
            return
        self.last = position
        for stream, batch in batches.items():
            rows = batch.to_pandas()
            rows["ts"] = np.asarray(batch.column("ts").cast(pa.int64()))
            mark = self.newest.get(stream)
            rows["mark"] = np.nan if mark is None else mark
            rows["stream"], rows["ms"], rows["seq"] = stream, *order(position)
            rows["luck"] = sample_hashes(stream, position, len(rows))
            self.blocks.append(rows)
            self.newest[stream] = max(mark or 0, int(rows.ts.max()))

    def records(self, batches: list[dict[str, Any]]) -> pd.DataFrame:
        """Return the whole input, each record with version and number of the batch that read it.

        And with the position of the ladder of drop rules in this batch.
        """
        rows = pd.concat(self.blocks, ignore_index=True)
        place = (rows.ms * 1_000_000 + rows.seq).to_numpy()
        versions = np.array([batch["version"] for batch in batches])
        positions = np.array([batch["ladder_position"] or 0.0 for batch in batches])
        rows["version"], rows["position"] = -1, 0.0
        for stream in rows.stream.unique().tolist():
            mine = (rows.stream == stream).to_numpy()
            batch = np.searchsorted(_ends(batches, stream), place[mine], "left")
            assert (batch < len(batches)).all(), "some records were never read"
            rows.loc[mine, "version"] = versions[batch]
            rows.loc[mine, "position"] = positions[batch]
        return rows

    def input_of(self, one: Asked, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the records that a query gets: of its streams, on time, and not dropped."""
        mine = rows[rows.stream.isin(one.streams)]
        readers = [version for version, table in enumerate(self.tables) if one.query in
                   table.queries]  # fmt: skip
        mine = mine[mine.version.isin(readers)]
        late = mine.ts < mine.mark - one.text.lateness_s * 1000
        dropped = self.dropped(mine, INPUT) | self.dropped(mine, one.query)
        return mine[~late & ~dropped & ~self.ladder_dropped(mine)]

    def dropped(self, rows: pd.DataFrame, query: int) -> pd.Series:
        """Return which records the edges to a query (or the input edges) drop."""
        gone = pd.Series(data=False, index=rows.index)
        drop_rules = {
            version * _STREAMS + stream: rule
            for version, table in enumerate(self.tables)
            for (stream, reader), rule in table.drop_rules.items()
            if reader == query
        }
        # Few versions drop anything of one edge.
        place = rows.version * _STREAMS + rows.stream
        some = rows[place.isin(list(drop_rules))]
        for at, part in some.groupby(place[some.index]):
            rule = drop_rules[int(np.array(at))]
            lost = is_dropped(rule, part.luck.to_numpy(np.uint64), part.ts.to_numpy(np.int64))
            gone.loc[part.index] = lost
        return gone

    def ladder_dropped(self, rows: pd.DataFrame) -> pd.Series:
        """Return which records the ladder drops on input edges, by the positions of batches."""
        gone = pd.Series(data=False, index=rows.index)
        for _, part in rows[rows.position > 0].groupby(["version", "position", "stream"]):
            first = part.iloc[0]
            ladder = self.tables[int(first.version)].ladder
            assert ladder is not None, "a position without a ladder"
            drops = LadderDrops(compiled_ladder(ladder), float(first.position))
            rule = drops.rule((int(first.stream), INPUT))
            if rule is not None:
                luck, times = part.luck.to_numpy(np.uint64), part.ts.to_numpy(np.int64)
                gone.loc[part.index] = is_dropped(rule, luck, times)
        return gone

    def ladder_dropped_records(self, rows: pd.DataFrame) -> dict[str, int]:
        """Return how many records the ladder has dropped that no other rule drops, by stream."""
        lost = rows[self.ladder_dropped(rows) & ~self.dropped(rows, INPUT)]
        return {str(stream): int(count) for stream, count in lost.groupby("stream").size().items()}

    def dropped_records(self, rows: pd.DataFrame) -> dict[str, int]:
        """Return how many records each edge has dropped, by the name that telemetry gives it."""
        found: dict[str, int] = {}
        at_input = self.dropped(rows, INPUT)
        before = at_input | self.ladder_dropped(rows)
        for stream, query in {edge for table in self.tables for edge in table.drop_rules}:
            came = rows[rows.stream == stream]
            lost = at_input[came.index]
            if query != INPUT:
                lost = self.dropped(came[~before[came.index]], query)
            name = str(stream) if query == INPUT else f"{stream}>{query}"
            found[name] = int(lost.sum())
        return {name: count for name, count in found.items() if count}

    @property
    def count(self) -> int:
        """Return the number of appended records."""
        return sum(map(len, self.blocks))

    def is_read(self, batches: list[dict[str, Any]]) -> bool:
        """Return whether the newest batch has the last record and the newest table."""
        if not batches:
            return False
        return (batches[-1]["end"], batches[-1]["version"]) == (self.last, len(self.tables) - 1)

    @property
    def asked(self) -> list[Asked]:
        """Return every query that was ever in the table."""
        routes = {pk: route for table in self.tables for pk, route in table.queries.items()}
        return [Asked(pk, QueryText.from_json(json.loads(route.text)), route.streams)
                for pk, route in routes.items()]  # fmt: skip

    def check_windows(self, batches: list[dict[str, Any]]) -> None:
        """Assert that the windows of every query are what its input says."""
        rows = self.records(batches)
        for one in self.asked:
            compare(self.measured(one), expected(one, self.input_of(one, rows)), one.query)

    def measured(self, one: Asked) -> dict[Any, list[Any]]:
        """Return the windows that a reader of a query sees, in the form of `expected`."""
        computation = computation_of(one.text, REPORTS.kinds)
        windows = read_windows(self.client, self.cluster, one.query, computation)
        return found_windows(windows, computation)
