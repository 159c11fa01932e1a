"""One process per checkpoint: two would spoil it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyRunning(Exception):
    """Another process holds the checkpoint."""


@contextmanager
def exclusive_lock(checkpoint: Path) -> Iterator[None]:
    """Hold the checkpoint's lock file. Raises `AlreadyRunning`."""
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    path = checkpoint.with_name(checkpoint.name + ".lock")
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(f"another driver runs on {checkpoint}: end it first") from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
