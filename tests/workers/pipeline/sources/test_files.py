"""Files as a source: those that change, vanish, cannot be read, or lie outside of the directory."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from controlplane.wire.dead_letters import Reason, newest, read_counts
from controlplane.wire.network.destinations import LIST
from controlplane.wire.results.database import ConnectedDatabase
from controlplane.wire.results.tables import create_tables
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema, SetSource
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.sources.files import FileSource
from controlplane.wire.sources.kinds import source_from_json
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.cut import PartitionPosition
from tests.support.destinations import list_destinations
from tests.support.object_store import BUCKET, KEYS, REGION, running_store
from tests.support.pipeline import Pipeline
from tests.support.postgres import running_postgres
from tests.support.topics import wait_until
from tests.workers.pipeline.sources.feeds import FilesFeed, windows_in, write_rows
from tests.workers.pipeline.sources.sales import QUERY, REVENUE_TEXT, SALES, START_MS, STREAM
from workers.pipeline.sources.files.index import FileIndex, IndexedFile
from workers.pipeline.sources.files.scan import STEP, scan
from workers.pipeline.sources.files.store import FileStore, StoreUnavailable
from workers.pipeline.sources.plan import PartitionRange

ROW = {"at": START_MS, "country": "DE", "amount": "1.00", "items": 1}


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that the list of the site has."""
    monkeypatch.setenv(LIST, f"{os.environ[LIST]} file://{tmp_path}/in")
    return tmp_path / "in"


@pytest.fixture
def feed(listed: Path, tmp_path: Path) -> FilesFeed:
    return FilesFeed(tmp_path, "json", 1)


@pytest.fixture
def pipeline(feed: FilesFeed, redis_client: "redis.Redis", redis_server: str) -> Pipeline:
    pipeline = Pipeline(redis_client, redis_server)
    pipeline.publish(
        AssignStream(STREAM, 0), SetSchema(STREAM, SALES), SetSource(STREAM, feed.source),
        AddQuery(QUERY, 0, 0, (STREAM,), json.dumps(feed.query.to_json())),
    )  # fmt: skip
    return pipeline


def place(path: Path, rows: int) -> None:
    write_rows([ROW] * rows, path.with_name("_part"), "json")
    path.with_name("_part").rename(path)


def read_until(
    pipeline: Pipeline, is_done: Callable[[dict[Reason, int]], bool]
) -> dict[Reason, int]:
    """Process batches until the counts of dead letters are as they should be; return them."""

    def done() -> bool:
        return not pipeline.batch() and is_done(counts())

    def counts() -> dict[Reason, int]:
        return dict(read_counts(pipeline.client, "c").get(STREAM, {}))

    wait_until(done, "the dead letters", 120)
    return counts()


def plan_rows(pipeline: Pipeline, rows: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """Process batches until the next one has so many rows, and return its offsets."""
    planned = list[tuple[dict[str, Any], dict[str, Any]]]()

    def is_planned() -> bool:
        begin = pipeline.offset or pipeline.reader.initialOffset()
        end = pipeline.reader.latestOffset(begin, None)
        places = end["sources"].get(str(STREAM), {}).get("partitions", {})
        count = sum(position[0] for position in places.values())
        if count >= rows:
            planned.append((begin, end))
        elif not count and end != begin:
            pipeline._process(begin, end)
            pipeline.offset = end
        return bool(planned)

    wait_until(is_planned, "the rows are planned", 120)
    return planned[0]


def total(pipeline: Pipeline, feed: FilesFeed) -> int:
    return sum(values[0] for values in windows_in(feed, pipeline.client, "c").values())


def test_a_file_that_grows_is_a_dead_letter_and_its_rows_count_once(
    pipeline: Pipeline, feed: FilesFeed, listed: Path
) -> None:
    place(listed / "a.json", 5)
    wait_until(lambda: not pipeline.batch() and total(pipeline, feed) == 5, "five rows", 120)
    for number in range(1, 3):
        with (listed / "a.json").open("a") as file:
            file.write(f"{json.dumps(ROW)}\n")
        # A change is found before a file that is written after it.
        (listed / f"_{number}").write_text("no json\n")
        (listed / f"_{number}").rename(listed / f"{number}.json")
        counts = {Reason.MESSAGE: number + 1}
        assert read_until(pipeline, counts.__eq__) == counts
    texts = sorted(letter.message for letter in newest(pipeline.client, "c"))
    assert [text.partition(".json")[0] for text in texts] == ["1", "2", "a"]
    assert total(pipeline, feed) == 5


def test_rows_of_a_file_that_vanishes_between_plan_and_read_are_lost_and_counted(
    pipeline: Pipeline, feed: FilesFeed, listed: Path
) -> None:
    place(listed / "a.json", 5)
    begin, end = plan_rows(pipeline)
    (listed / "a.json").unlink()
    pipeline._process(begin, end)
    pipeline.offset = end
    assert read_counts(pipeline.client, "c")[STREAM] == {Reason.LOST: 5}
    place(listed / "b.json", 2)
    wait_until(lambda: not pipeline.batch() and total(pipeline, feed) == 2, "the next file", 120)


def test_files_that_cannot_be_read_are_dead_letters(
    pipeline: Pipeline, feed: FilesFeed, listed: Path, tmp_path: Path
) -> None:
    """A link to a file elsewhere, a line that is too long, and a row that is no record."""
    (tmp_path / "secret.json").write_text(json.dumps(ROW | {"country": "secret"}))
    (listed / "link.json").symlink_to(tmp_path / "secret.json")
    contents = {"long.json": "x" * (2 << 20), "bad.json": f"{json.dumps(ROW)}\n\nno json\n"}
    for name, content in contents.items():
        (listed / "_part").write_text(content)
        (listed / "_part").rename(listed / name)
    counts = read_until(pipeline, lambda found: found.get(Reason.MESSAGE, 0) >= 3)
    assert counts == {Reason.MESSAGE: 3}
    texts = sorted(letter.message for letter in newest(pipeline.client, "c"))
    names = ("bad.json, row 2", "link.json", "long.json")
    assert [name in text for name, text in zip(names, texts, strict=True)] == [True] * 3
    assert total(pipeline, feed) == 1
    assert b"secret" not in b"".join(letter.data for letter in newest(pipeline.client, "c"))


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_dead_letter_keeps_the_record_with_its_place(
    pipeline: Pipeline, feed: FilesFeed, listed: Path, kind: str
) -> None:
    """So it can be appended again under a wider schema."""
    source = replace(feed.source, format=kind, metadata={"part": "row"}, pattern="*")
    pipeline.publish(SetSource(STREAM, source))
    write_rows([ROW, ROW | {"at": None}], listed / "_part", kind)
    (listed / "_part").rename(listed / f"a.{kind}")
    assert read_until(pipeline, bool) == {Reason.MESSAGE: 1}
    (letter,) = newest(pipeline.client, "c")
    row = json.loads(letter.data)
    assert (row["at"], row["country"], row["part"]) == (None, "DE", 1)


def test_a_plan_asks_the_index_once_for_all_split_nodes(
    feed: FilesFeed, redis_client: "redis.Redis", redis_server: str, listed: Path
) -> None:
    pipeline = Pipeline(redis_client, redis_server, splits=2)
    pipeline.publish(
        AssignStream(STREAM, 0), AssignStream(STREAM + 1, 1), SetSchema(STREAM, SALES),
        SetSource(STREAM, feed.source), AddQuery(QUERY, 0, 0, (STREAM,), REVENUE_TEXT),
    )  # fmt: skip
    for name in "ab":
        place(listed / f"{name}.json", 3)
    begin, end = plan_rows(pipeline, 6)
    asked: list[int] = []
    whole = FileIndex.overlapping

    def counted(index: FileIndex, ranges: Sequence[PartitionRange]) -> Any:
        asked.append(len(ranges))
        return whole(index, ranges)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileIndex, "overlapping", counted)
        parts = pipeline.reader.partitions(begin, end)
    assert asked == [2]
    given = [list(topic.details) for part in parts for topic in vars(part)["ranges"].sources]
    assert sorted(given) == [[0], [1]]


@pytest.mark.parametrize("url", ["file:///etc", "file://{}/in/../other", "file://{}/other"])
def test_a_directory_that_the_site_does_not_list_is_refused(
    listed: Path, tmp_path: Path, url: str
) -> None:
    source = FileSource(url.format(tmp_path))
    assert source.refusals().keys() == {"url"}
    with pytest.raises(StoreUnavailable):
        FileStore(source).check()


def test_a_listed_name_that_is_a_link_to_another_directory_is_refused(
    listed: Path, tmp_path: Path
) -> None:
    listed.mkdir()
    (listed / "etc").symlink_to("/etc")
    source = FileSource(f"file://{listed}/etc")
    assert source.refusals() == {}, "nobody looks at the disk when it is declared"
    with pytest.raises(StoreUnavailable):
        FileStore(source).check()


def test_files_of_another_store_are_read_with_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """As sinks write to it: by endpoint and region, and with a secret that only the site has."""
    with running_store() as store:
        source = FileSource(
            f"s3://{BUCKET}/in", endpoint=store.url, region=REGION, secrets={"store": "lake"}
        )
        with store.files.open_output_stream(f"{BUCKET}/in/a.json") as stream:
            stream.write(f"{json.dumps(ROW)}\n".encode() * 3)
        list_destinations(monkeypatch, f"s3://{BUCKET}")
        assert source.refusals().keys() == {"endpoint"}
        with pytest.raises(StoreUnavailable, match="WEIR_DESTINATIONS"):
            FileStore(source)
        list_destinations(monkeypatch, f"s3://{BUCKET} {store.url}")
        with pytest.raises(StoreUnavailable, match="WEIR_TOPIC_SECRET_LAKE"):
            FileStore(source)
        monkeypatch.setenv("WEIR_TOPIC_SECRET_LAKE", ":".join(KEYS))
        opened = FileStore(source)
        opened.check()
        (found,) = opened.listed()
        assert (found.name, scan(opened, found, source)[0]) == ("a.json", 3)


def test_the_index_is_alike_on_both_databases(tmp_path: Path) -> None:
    source = FileSource("file:///srv/in", partitions=2)
    files = [IndexedFile(0, 0, rows, f"{rows}.json", rows, rows, [0, 7], ["at"])
             for rows in (3, 4, 5, 6)]  # fmt: skip

    def answers(url: str) -> list[Any]:
        database = ConnectedDatabase(url)
        database.run(lambda cursor: create_tables(cursor, is_postgres=database.is_postgres))
        index = FileIndex(source, "c", STREAM, url)
        index.append(files[:2])
        index.append([*files, files[0]._replace(fault="has changed", rows=1)])
        FileIndex(replace(source, pattern="*.json"), "c", STREAM, url).append(files)
        index.forget_others()
        before = index.files(), index.ends(), index.files("AND modified_ns >= ?", [5])
        index.forget({"3.json", "4.json", "6.json"}, {0: 99, 1: 2})
        place = PartitionPosition(0)
        return [*before, index.overlapping([PartitionRange(n, 0, 9, place) for n in (0, 1)])]

    with running_postgres() as server:
        found = answers(server)
    assert found == answers(f"sqlite:///{tmp_path}/results")
    assert [file.name for file in found[0]] == ["3.json", "4.json", "5.json", "6.json", "3.json"]
    assert found[1] == {0: 9, 1: 10}
    assert [file.name for file in found[3][0]] == ["5.json", "3.json"]


@pytest.mark.parametrize("change", [
    {"url": "/data"}, {"url": "http://x/data"}, {"pattern": "../*"}, {"format": "avro"},
    {"metadata": {"at": "offset"}}, {"partitions": 0}, {"settle_s": -1}, {"secrets": {"x": "y"}},
    {"secrets": {"store": "A b"}}, {"secrets": {"store": 5}}, {"topic": "t", "servers": "b:9"},
    {"endpoint": "http://x:99999"}, {"endpoint": "x"}, {"region": "EU!"},
])  # fmt: skip
def test_a_wrong_declaration_is_refused_with_its_field(change: dict[str, object]) -> None:
    with pytest.raises(BadSource) as refused:
        FileSource.from_json({"url": "file:///data"} | change)
    assert refused.value.fields.keys() == change.keys()


@pytest.mark.parametrize("kind", ["x", 5, None, ["files"], {}])
def test_a_kind_that_nothing_reads_is_refused(kind: object) -> None:
    with pytest.raises(BadSource) as refused:
        source_from_json({"kind": kind, "url": "file:///data"})
    assert refused.value.fields.keys() == {"kind"}


@pytest.mark.parametrize("tail", ["", "\n"])
def test_the_places_of_lines_are_where_they_begin(listed: Path, tail: str) -> None:
    """Of every STEP-th line, over several blocks; the last line may have no end."""
    listed.mkdir()
    lines = [f"{n}:{'x' * (n % 700)}" for n in range(3 * STEP + 1)]
    (listed / "a").write_text("\n".join(lines) + tail)
    store, source = FileStore(FileSource(f"file://{listed}")), FileSource(f"file://{listed}")
    (file,) = store.listed()
    rows, places, _ = scan(store, file, source)
    data = (listed / "a").read_bytes()
    assert rows == len(lines)
    begins = [data[byte:].split(b":", 1)[0] for byte in places if byte < len(data)]
    assert begins == [str(n * STEP).encode() for n in range(4)]
