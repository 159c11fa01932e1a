"""Spark's record of a streaming query, as files: where its batches ended, and its partitions.

Spark writes `offsets/<n>` before batch n runs and `commits/<n>` once it is whole.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
# The folder of a bootstrap (`bootstrap.py`) in a checkpoint, and the table in it.
SEED: Final = "seed"
SEED_TABLE: Final = "seed.json"
_LOCK_POLL_S: Final = 0.1


class CheckpointUnusable(Exception):
    """The directory is not a checkpoint of an application that has run."""


class WrongPartitions(Exception):
    """The checkpoint has another number of partitions."""

    def __init__(self, checkpoint: Path, there: int, wanted: int) -> None:
        super().__init__(
            f"{checkpoint} has {there} partitions, not {wanted}: "
            f"`python -m workers.pipeline.repartition` changes the number"
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint between two batches.

    `committed`: Spark's number of the last whole batch; `offset`: where that ended; `pending`:
    where the batch ends that was begun and not finished, None if there is none.
    """

    path: Path
    partitions: int
    committed: int
    offset: Mapping[str, Any]
    pending: Mapping[str, Any] | None

    @classmethod
    def read(cls, path: Path) -> "Checkpoint":
        """Read a checkpoint that no driver has. Raises `CheckpointUnusable`."""
        whole, planned = batches_in(path / "commits"), batches_in(path / "offsets")
        if not whole or whole[-1] not in planned:
            raise CheckpointUnusable(f"{path} holds no whole batch")
        partitions, offset = _offsets(path, whole[-1])
        pending = _offsets(path, planned[-1])[1] if planned[-1] > whole[-1] else None
        return cls(path, partitions, whole[-1], offset, pending)


def has_begun(path: Path) -> bool:
    """Return whether a batch of the checkpoint is whole."""
    return bool(batches_in(path / "commits"))


def existing_partitions(checkpoint: Path) -> int | None:
    """Return the partitions of a checkpoint or of its bootstrap, None if neither exists."""
    table = checkpoint / SEED / SEED_TABLE
    if table.exists():
        return int(json.loads(table.read_text())["partitions"])
    return partitions_of(checkpoint)


def partitions_of(path: Path) -> int | None:
    """Return the number of partitions of a checkpoint, None for one without a batch."""
    planned = batches_in(path / "offsets")
    return _offsets(path, planned[-1])[0] if planned else None


def batches_in(directory: Path) -> list[int]:
    """Return the numbers of the batches with a file in a directory, in their order."""
    if not directory.is_dir():
        return []
    return sorted(int(file.name) for file in directory.iterdir() if file.name.isdigit())


def _offsets(path: Path, batch: int) -> tuple[int, dict[str, Any]]:
    """Return the partitions and the end of a batch.

    The lines of the file: a version, Spark's own, one per source.
    """
    _, own, source = (path / "offsets" / str(batch)).read_text().splitlines()
    offset: dict[str, Any] = json.loads(source)
    return int(json.loads(own)["conf"][_PARTITIONS]), offset


class AlreadyRunning(Exception):
    """Another process holds the checkpoint."""


@contextmanager
def exclusive_lock(checkpoint: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the checkpoint's lock file: two processes would spoil it.

    Raises `AlreadyRunning` if another process holds it for `wait_s`.
    """
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    path = checkpoint.with_name(checkpoint.name + ".lock")
    with path.open("a+") as file:
        deadline = time.monotonic() + wait_s
        while not _try_lock(file):
            if time.monotonic() >= deadline:
                raise AlreadyRunning(f"another driver runs on {checkpoint}: end it first")
            time.sleep(_LOCK_POLL_S)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def fsync_path(path: Path) -> None:
    """Wait until the file or directory is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_draft(checkpoint: Path) -> Path:
    """Return an empty directory for the next checkpoint."""
    draft = checkpoint.with_name(checkpoint.name + ".next")
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(parents=True)
    return draft


def swap(checkpoint: Path, draft: Path, kept: Path) -> None:
    """Replace the checkpoint with the draft; the old checkpoint gets another name."""
    plan = _plan(checkpoint)
    written = plan.with_name(plan.name + ".tmp")
    written.write_text(json.dumps({"draft": draft.name, "kept": kept.name}))
    fsync_path(written)
    written.replace(plan)
    fsync_path(plan.parent)
    finish_swap(checkpoint)


def finish_swap(checkpoint: Path) -> None:
    """Finish an interrupted swap; the caller owns the checkpoint."""
    plan = _plan(checkpoint)
    if not plan.exists():
        return
    names = json.loads(plan.read_text())
    draft, kept = (checkpoint.with_name(names[name]) for name in ("draft", "kept"))
    if draft.exists():
        # Whether the first step was taken: the old checkpoint has its new name.
        if not kept.exists():
            checkpoint.rename(kept)
        draft.rename(checkpoint)
        fsync_path(checkpoint.parent)
    plan.unlink()


def _plan(checkpoint: Path) -> Path:
    return checkpoint.with_name(checkpoint.name + ".swap")
