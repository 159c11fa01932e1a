"""One random life of a cluster: its real log, nodes, sink and results, without Spark.

The clock of the log is moved by hand, so that streams are idle when the life wants it.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import redis

from algorithms.partitioning.catalog import GROUPINGS, grouping_text
from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.models import Cluster, Query, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.results import finality
from controlplane.results.filters import CURSOR, WindowFilters, WindowState
from controlplane.results.pages import windows_page
from controlplane.topology import queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire import keys
from controlplane.wire.producer import Producer
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetCapacity, SetSchema
from controlplane.wire.routing.query_actions import (
    AddQuery,
    MoveTasks,
    SetAggregator,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.routing.route import NO_AGGREGATOR, TaskRange, ranges_of, task_ranges_of
from controlplane.wire.schema import StreamSchema, common_kinds
from tests.support.groupings import random_grouping
from tests.support.pipeline import Pipeline
from tests.support.watermarks import Appended, newest_of, watermarks
from tests.workers.pipeline.laws.drawn import (
    IDLE_S,
    random_join,
    random_row,
    random_schema,
    random_text,
)
from tests.workers.pipeline.laws.plain import Asked, Place, Record, late_of, windows_of

NODES, SPLITS, STREAMS, MOST_QUERIES = 3, 2, 4, 6
# Behind every time that this machine's clock shows during a test, within what a stream allows.
_AHEAD: Final = timedelta(minutes=10)
_DAY_MS: Final = 24 * 3_600_000


@dataclass
class Life:
    """A cluster with random streams and queries, and all that was ever appended to it.

    `idles`: whether streams fall silent for long; then no query is a join or has an aggregator, as
    it depends on when their nodes had them which records of a stream that returns are late.
    """

    client: "redis.Redis"
    url: str
    actor: Actor
    cluster: Cluster
    seed: int
    rng: random.Random = field(init=False)
    records: list[Record] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    final: dict[tuple[int, Place], Any] = field(default_factory=dict)
    corrected: int = 0
    appends: dict[int, list[Appended]] = field(default_factory=lambda: defaultdict(list))
    task_counts: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.idles = self.rng.random() < 0.5
        self.now = datetime.now(UTC) + _AHEAD
        # Times ahead of the log's clock wait for a while.
        self.event_ms = (self._now_ms - self.rng.choice((0, _DAY_MS))) // 1000 * 1000
        self.pipeline = Pipeline(
            self.client, self.url, self.cluster.slug, NODES, SPLITS, self.rng.choice((20, 10_000))
        )
        self.schemas, self.names = self._streams()
        self.producer = Producer(self.url, self.cluster.slug, schemas=self.schemas)
        self.pipeline.publish(
            *(AssignStream(pk, pk % SPLITS) for pk in self.schemas),
            *(SetSchema(pk, schema) for pk, schema in self.schemas.items()),
        )
        self.ask()

    @property
    def _now_ms(self) -> int:
        return round(self.now.timestamp() * 1000)

    def _streams(self) -> tuple[dict[int, StreamSchema], dict[int, str]]:
        texts = self.rng.random() < 0.5
        drawn = [random_schema(self.rng, texts=texts, idles=self.idles) for _ in range(STREAMS)]
        specs = [StreamSpec(f"random-{at}", schema=one.to_json()) for at, one in enumerate(drawn)]
        rows: list[Stream] = streams.register(self.actor, self.cluster, specs)
        pairs = list(zip(rows, drawn, strict=True))
        return {row.pk: one for row, one in pairs}, {row.pk: row.name for row, _ in pairs}

    def step(self) -> None:
        """Let something happen, and look at the windows if it concerns them."""
        rng = self.rng
        kind = rng.choices(("append", "batch", "move", "ask", "silence", "finish", "forget"),
                           (8, 8, 2, 1, 1, 3, 1))[0]  # fmt: skip
        self._do(kind)
        if kind in ("batch", "finish"):
            self.check()

    def _do(self, kind: str) -> None:
        if kind == "ask" and len(self.asked) < MOST_QUERIES:
            self.ask()
        elif kind == "silence" and self.idles:
            self.pass_time(timedelta(seconds=IDLE_S * self.rng.choice((0.4, 1.1))))
        elif kind == "forget":
            finality._timings.clear()
            if self.batches:
                self.pipeline.commit()
        elif kind in self._kinds:
            self._kinds[kind]()

    @property
    def _kinds(self) -> dict[str, Callable[[], None]]:
        return {
            "append": self.append,
            "batch": self.batch,
            "move": self.move,
            "finish": self.update_finality,
        }

    def ask(self) -> None:
        """Submit a query that begins now, of any kind that this life may have."""
        rng, every = self.rng, list(self.schemas)
        rng.shuffle(every)
        count = rng.randint(1, STREAMS)
        left, right = every[:count], []
        text, tasks, key_grouping = random_text(rng), rng.choice((1, 1, 3)), ""
        if not self.idles and rng.random() < 0.4:
            left, right = every[:2], every[2 : rng.choice((3, 4))]
            text = random_join(rng, right)
        elif not self.idles and text.key and rng.random() < 0.7:
            key_grouping, tasks = rng.choice(list(GROUPINGS)), 3
        spec = QuerySpec(
            f"query-{len(self.asked)}", [self.names[one] for one in left], text,
            tasks=tasks if text.key or right else 1,
            right=[self.names[one] for one in right], key_grouping=key_grouping,
        )  # fmt: skip
        row = queries.submit(self.actor, self.cluster, spec)
        Query.objects.filter(pk=row.pk).update(submitted_at=self.now)
        self._add(row, text, left, right)

    def _add(self, row: Query, text: Any, left: list[int], right: list[int]) -> None:
        owners = sorted(self._node() for _ in range(row.task_count))
        task_ranges: tuple[TaskRange, ...] = task_ranges_of(owners) if row.task_count > 1 else ()
        aggregator = self._node() if row.key_grouping else NO_AGGREGATOR
        key_grouping = grouping_text(row.key_grouping) if row.key_grouping else ""
        self.pipeline.publish(
            AddQuery(
                row.pk,
                0,
                owners[0],
                (*left, *right),
                row.text,
                task_ranges,
                key_grouping,
                aggregator,
            )
        )
        kinds = common_kinds(self.schemas[one] for one in left)[0]
        if right:
            other = common_kinds(self.schemas[one] for one in right)[0]
            kinds = {f"a.{name}": kind for name, kind in kinds.items()} | {
                f"b.{name}": kind for name, kind in other.items()
            }
        self.task_counts[row.pk] = row.task_count
        self.asked.append(
            Asked(row.pk, text, (*left, *right), kinds, self.pipeline.version,
                  bool(row.key_grouping), self.names)
        )  # fmt: skip

    def _node(self) -> int:
        return self.rng.randrange(NODES)

    def append(self) -> None:
        """Append blocks of some streams, their records out of order, some of them late."""
        rng = self.rng
        self.pass_time(timedelta(milliseconds=rng.randint(1, 3_000)))
        self.event_ms += rng.choice((0, 200, 2_000, 20_000))
        blocks: dict[int, list[dict[str, Any]]] = {}
        made: dict[int, list[Record]] = {}
        for stream in rng.sample(list(self.schemas), rng.randint(1, 3)):
            rows = [self._row(stream) for _ in range(rng.randint(1, 12))]
            blocks[stream] = rows
            mark_ms = watermarks(self.appends[stream], self._delay_ms(stream))[-1]
            made[stream] = [_record(stream, row, mark_ms) for row in rows]
        position = self.producer.append(blocks)
        assert position is not None
        for stream, records in made.items():
            late = [one for one in records if not one.is_on_time(self._delay_ms(stream))]
            assert position.late is not None
            assert position.late[stream] == len(late)
            newest_ms = newest_of((one.ts_ms for one in records), self._delay_ms(stream))
            self.appends[stream].append(Appended(_order(position)[0], newest_ms, len(records)))
            for one in records:
                one.position = _order(position)
            self.records += records

    def _delay_ms(self, stream: int) -> int:
        return round(self.schemas[stream].watermark_delay_s * 1000)

    def _row(self, stream: int) -> dict[str, Any]:
        late = self.rng.choice((0, 0, 300, 2_000, 15_000))
        ts_ms = self.event_ms - self.rng.randint(0, late)
        moment = datetime.fromtimestamp(ts_ms / 1000, UTC)
        return {"happened": moment, **random_row(self.rng, self.schemas[stream])}

    def batch(self) -> None:
        """Process a batch, perhaps twice, as after a crash."""
        row = self.pipeline.batch(repeat=self.rng.choice((1, 1, 1, 2)))
        if not row:
            return
        assert row["faults"] == []
        ingestion.count_late(self.cluster, [row])
        end = _order(row["end"])
        for one in self.records:
            if one.batch is None and one.position <= end:
                one.batch, one.version = row["batch"], row["version"]
        self.batches.append(row["batch"])

    def finish(self) -> None:
        """Process what is left, and learn what is final."""
        for _ in range(20):
            self.batch()
        unread = [one for one in self.records if one.batch is None]
        assert not unread, unread
        self.update_finality()

    def move(self) -> None:
        """Move tasks of a query or its aggregator node, or change its grouping or task count."""
        rng, asked = self.rng, self.rng.choice(self.asked)
        count = self.task_counts[asked.pk]
        tasks = rng.sample(range(count), rng.randint(1, count))
        moves = MoveTasks(asked.pk, tuple((self._node(), task, task + 1) for task in tasks))
        if not asked.merged:
            self.pipeline.publish(moves)
            return
        key_grouping = SetKeyGrouping(asked.pk, random_grouping(rng))
        nodes = tuple(rng.sample(range(NODES), rng.randint(1, NODES)))
        aggregators = rng.choice(
            (SetAggregator(asked.pk, self._node()), SetAggregators(asked.pk, nodes))
        )
        capacity = SetCapacity(self._node(), float(rng.randint(100, 2_000)), emulated=False)
        ops: list[Action] = [moves, aggregators, key_grouping, capacity]
        chosen = rng.sample(ops, rng.randint(1, 4))
        if rng.random() < 0.5:
            chosen.append(self._task_count(asked.pk, rng.randint(2, 6)))
        self.pipeline.publish(*chosen)

    def _task_count(self, query: int, tasks: int) -> SetTaskCount:
        """Return the change of a query's number of tasks, new ones anywhere."""
        added = ranges_of([(task, self._node()) for task in range(self.task_counts[query], tasks)])
        self.task_counts[query] = tasks
        return SetTaskCount(query, tasks, added)

    def pass_time(self, by: timedelta) -> None:
        """Let time pass for the log: what is appended next is at least so much later."""
        self.now += by
        index = keys.index_key(self.cluster.slug)
        found: Any = self.client.xrevrange(index, count=1)
        last = found[0][1] if found else {}
        fields: Any = {"n": 0, "total": last.get(b"total", 0), "bytes": last.get(b"bytes", 0)}
        self.client.xadd(index, fields, id=f"{self._now_ms}-0")

    def update_finality(self) -> None:
        """Let windows become final."""
        finality.update_finality(self.now)

    def seen_batch(self, asked: Asked) -> int:
        """Return the batch up to which a reader has the records of a query.

        An aggregator node has those of a batch in the next one.
        """
        seen = self.batches[:-1] if asked.merged else self.batches
        return seen[-1] if seen else -1

    def check(self) -> None:
        """Assert that what is read is what the records say, and that final windows stay.

        A stream that was idle may correct them.
        """
        seen = set()
        for asked in self.asked:
            found = self.read(asked)
            seen |= {(asked.pk, place) for place in found}
            wanted = windows_of(asked, self.records, self.seen_batch(asked))
            differing = [
                (place, found.get(place), wanted.get(place))
                for place in found.keys() | wanted.keys()
                if place not in found or found[place][0] != wanted.get(place)
            ]
            assert not differing, (asked, differing)
            for place, (values, state) in found.items():
                if state is WindowState.FINAL:
                    before = self.final.setdefault((asked.pk, place), values)
                    self.corrected += before != values
                    assert self.idles or before == values, (asked, place, before, values)
        missing = self.final.keys() - seen
        assert not missing, missing

    def check_completeness(self) -> None:
        """Assert that final windows lack no record that was on time, if no stream was silent."""
        for asked in self.asked if not self.idles else ():
            everything = windows_of(asked, self.records, self.batches[-1])
            final = {place: v for (pk, place), v in self.final.items() if pk == asked.pk}
            complete = {place: everything.get(place) for place in final}
            assert final == complete, (asked, final, complete)

    def check_late(self) -> None:
        """Assert that every late record is counted once, by its stream and by each query."""
        for asked in self.asked if not self.idles else ():
            assert Query.objects.get(pk=asked.pk).late_records == late_of(asked, self.records), (
                asked
            )
        for stream, total in Stream.objects.values_list("pk", "late_records"):
            since = [asked.version for asked in self.asked if stream in asked.streams]
            late = [
                one for one in self.records if one.stream == stream and one.batch is not None
                and one.version >= min(since, default=one.version + 1)
                and not one.is_on_time(self._delay_ms(stream))
            ]  # fmt: skip
            assert total == len(late)

    def read(self, asked: Asked) -> dict[Place, tuple[dict[str, Any], WindowState]]:
        """Return all windows of a query with their states, page by page; each is there once."""
        query = Query.objects.get(pk=asked.pk)
        found: dict[Place, tuple[dict[str, Any], WindowState]] = {}
        wanted = WindowFilters(
            limit=self.rng.choice((20, 200)), newest_first=self.rng.random() < 0.5
        )
        while True:
            page = windows_page(self.cluster, query, wanted)
            for one in page.rows:
                place = (round(one.start.timestamp() * 1000), *one.key.values())
                assert place not in found
                found[place] = dict(one.values), one.state
            if not page.next:
                return found
            wanted = replace(wanted, after=CURSOR.place(page.next))


def _record(stream: int, row: dict[str, Any], mark_ms: int | None) -> Record:
    ts_ms = round(row["happened"].timestamp() * 1000)
    rest = {name: value for name, value in row.items() if name != "happened"}
    return Record(stream, ts_ms, rest, mark_ms, (0, 0))


def _order(position: str) -> tuple[int, int]:
    ms, sequence = position.split("-")
    return int(ms), int(sequence)
