"""Files of a disk that fails, and files that are not what was found: what is read, and how much."""

import errno
import io
import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import redis

from controlplane.wire import attempts
from controlplane.wire.dead_letters import Reason, newest, read_counts
from controlplane.wire.routing.cluster_actions import SetSource
from controlplane.wire.sources.files import FileSource
from controlplane.wire.topics.cut import PartitionPosition
from tests.support.pipeline import Pipeline
from tests.support.topics import wait_until
from tests.workers.pipeline.sources.feeds import FilesFeed, write_rows
from tests.workers.pipeline.sources.sales import SALES, STREAM
from tests.workers.pipeline.sources.test_files import (
    ROW,
    feed,
    listed,
    pipeline,
    place,
    plan_rows,
    read_until,
    total,
)
from workers.pipeline.sources.entries import LostRecords
from workers.pipeline.sources.files import latest, store
from workers.pipeline.sources.files.index import FileIndex, IndexedFile
from workers.pipeline.sources.files.latest import FileWatcher
from workers.pipeline.sources.files.read import read_ranges
from workers.pipeline.sources.files.scan import STEP, scan
from workers.pipeline.sources.files.store import FileStore, FileStream, StoreUnavailable
from workers.pipeline.sources.plan import PartitionRange, SourceRanges
from workers.pipeline.sources.planner import planner_of
from workers.pipeline.split_nodes import source as source_module

__all__ = ["feed", "listed", "pipeline"]


class FailingFile(io.BytesIO):
    """A file whose disk fails."""

    def readinto(self, buffer: Any, /) -> int:
        """Fail."""
        raise OSError(errno.EIO, "Input/output error")


@pytest.fixture
def failing() -> Iterator[pytest.MonkeyPatch]:
    """Let the disk fail until the patch is undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "FileStream", lambda name, _: FileStream(name, FailingFile(bytes(99))))
        yield patch


def error_of() -> str:
    _, watcher = planner_of("c")._watchers[STREAM]
    return watcher.state().error


def test_a_new_file_waits_for_a_disk_that_fails(
    pipeline: Pipeline, feed: FilesFeed, listed: Path, failing: pytest.MonkeyPatch
) -> None:
    place(listed / "a.json", 5)
    wait_until(lambda: not pipeline.batch() and "Input/output" in error_of(), "an error", 120)
    failing.undo()
    wait_until(lambda: not pipeline.batch() and total(pipeline, feed) == 5, "five rows", 120)
    assert read_counts(pipeline.client, "c") == {}


def test_a_file_that_cannot_be_read_for_long_is_a_dead_letter(
    pipeline: Pipeline, listed: Path, failing: pytest.MonkeyPatch
) -> None:
    failing.setattr(latest, "_ATTEMPTS", 2)
    failing.setattr(FileWatcher, "period_s", 0.05)
    place(listed / "a.json", 5)
    assert read_until(pipeline, bool) == {Reason.MESSAGE: 1}
    (letter,) = newest(pipeline.client, "c")
    assert "a.json" in letter.message


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_batch_is_repeated_after_a_disk_has_failed(
    pipeline: Pipeline, feed: FilesFeed, listed: Path, kind: str
) -> None:
    pipeline.publish(SetSource(STREAM, FileSource(feed.source.url, f"*.{kind}", kind, settle_s=0)))
    write_rows([ROW] * 5, listed / "_part", kind)
    (listed / "_part").rename(listed / f"a.{kind}")
    begin, end = plan_rows(pipeline)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "FileStream", lambda name, _: FileStream(name, FailingFile(bytes(99))))
        with pytest.raises(StoreUnavailable):
            pipeline._process(begin, end)
    assert read_counts(pipeline.client, "c") == {}
    pipeline._process(begin, end)
    assert total(pipeline, feed) == 5


def test_rows_of_a_disk_that_fails_again_and_again_are_lost_and_counted(
    pipeline: Pipeline, listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often as a batch is tried before retries alone are pointless; each driver counts."""
    place(listed / "a.json", 5)
    begin, end = plan_rows(pipeline)
    monkeypatch.setattr(
        store, "FileStream", lambda name, _: FileStream(name, FailingFile(bytes(99)))
    )
    for driver in range(attempts.FAILURES):
        monkeypatch.setattr(source_module, "process_id", lambda driver=driver: f"driver-{driver}")
        with pytest.raises(StoreUnavailable):
            pipeline._process(begin, end)
    monkeypatch.setattr(source_module, "process_id", lambda: "the last one")
    pipeline._process(begin, end)
    assert read_counts(pipeline.client, "c") == {STREAM: {Reason.LOST: 5}}
    (letter,) = newest(pipeline.client, "c")
    assert "a.json" in letter.message


def test_rows_that_no_decoder_reads_are_lost_and_counted(
    pipeline: Pipeline, feed: FilesFeed, listed: Path
) -> None:
    """What is spoiled stays so: the batch is not repeated."""
    source = FileSource(feed.source.url, "*.parquet", "parquet", settle_s=0)
    pipeline.publish(SetSource(STREAM, source))
    write_rows([ROW] * 5, listed / "_part", "parquet")
    path = (listed / "_part").rename(listed / "a.parquet")
    begin, end = plan_rows(pipeline)
    found, data = path.stat(), bytearray(path.read_bytes())
    foot = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:foot] = bytes(byte ^ 0x5A for byte in data[4:foot])
    path.write_bytes(data)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    pipeline._process(begin, end)
    assert read_counts(pipeline.client, "c") == {STREAM: {Reason.LOST: 5}}


def found(folder: Path, file: str) -> tuple[FileSource, IndexedFile]:
    """Return a file as a source indexes it."""
    kind = file.rpartition(".")[2]
    source = FileSource(f"file://{folder}", f"*.{kind}", kind)
    (known,) = FileStore(source).listed()
    rows, places, names = scan(FileStore(source), known, source)
    return source, IndexedFile(0, 0, rows, *known, places, names)


def read(source: FileSource, entry: IndexedFile, stop: int) -> tuple[int, list[LostRecords]]:
    """Return how many of the first rows of a file are read, and the losses."""
    item = PartitionRange(0, 0, stop, PartitionPosition(0))
    part = SourceRanges(STREAM, "g", [item], None, is_marked=False, cut=None, details={0: [entry]})
    (result,) = read_ranges(part, source, SALES, 1 << 50)
    count = sum(len(chunk.offsets) for chunk in result.chunks)
    return count, list(result.losses)


def write_long(path: Path) -> None:
    """Write many rows, or few with a long column that the stream does not have."""
    if path.suffix == ".parquet":
        rows: dict[str, Any] = {"at": [1, 2, 3], "more": [os.urandom(4 << 20)] * 3}
        pq.write_table(pa.table(rows), path, use_dictionary=False)
    else:
        path.write_text(f"{' ' * 900}{{}}\n" * (2 * STEP))


@pytest.mark.parametrize("file", ["a.json", "a.parquet"])
def test_a_batch_reads_little_more_than_its_rows(
    listed: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    listed.mkdir()
    write_long(listed / file)
    source, entry = found(listed, file)
    sizes: list[int] = []
    whole = FileStream.readinto

    def counted(stream: FileStream, buffer: Any, /) -> int:
        sizes.append(len(buffer))
        return whole(stream, buffer)

    monkeypatch.setattr(FileStream, "readinto", counted)
    assert read(source, entry, 3) == (3, [])
    assert sum(sizes) < 2 << 20 < (listed / file).stat().st_size


def test_a_file_with_fewer_rows_than_were_found_has_lost_the_others(listed: Path) -> None:
    """As one that is cut off between the look at it and the read."""
    listed.mkdir()
    (listed / "a.json").write_text("{}\n" * 5)
    source, entry = found(listed, "a.json")
    count, (loss,) = read(source, entry._replace(rows=8), 8)
    assert (count, loss.offset, loss.records) == (0, 0, 8)


def test_names_of_missing_files_are_forgotten_once_a_day(
    listed: Path, monkeypatch: pytest.MonkeyPatch, redis_client: "redis.Redis"
) -> None:
    """The last file of a partition stays, and is not tried each second."""
    listed.mkdir()
    forgotten: list[set[str]] = []
    whole, clock = FileIndex.forget, [0.0]

    def noted(index: FileIndex, names: Collection[str], offsets: Mapping[int, int]) -> None:
        forgotten.append(set(names))
        whole(index, names, offsets)

    monkeypatch.setattr(FileIndex, "forget", noted)
    times = SimpleNamespace(monotonic=lambda: clock[0], time=time.time)
    monkeypatch.setattr(latest, "time", times)
    monkeypatch.setattr(FileWatcher, "start", lambda _: None)
    watcher = FileWatcher(FileSource(f"file://{listed}", settle_s=0), "c", STREAM)
    for name in "ab":
        (listed / name).write_text("{}\n")
        watcher._refresh()
        (listed / name).unlink()
    watcher.commit({0: 2})
    for hour in (0, 25, 26, 50):
        clock[0] = hour * 3600.0
        watcher._refresh()
    watcher._end()
    assert forgotten == [{"a", "b"}, {"b"}]
