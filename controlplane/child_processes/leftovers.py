"""What a computation may leave behind: processes that it started, and temporary folders."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from controlplane.child_processes.trees import family, in_group, kill_all, with_environment

_MARK: Final = "WEIR_COMPUTATION"
_PREFIX: Final = "weir-computation-"


@dataclass(frozen=True)
class Leftovers:
    """The mark in the environment of a computation's processes, and its temporary folder."""

    mark: str
    folder: Path

    def adopt(self) -> None:
        """Let this process, and all that it starts, be found by the mark and use the folder."""
        # Descendants that were forked and executed nothing have no environment of their own.
        os.setpgid(0, 0)
        os.environ[_MARK] = self.mark
        os.environ["TMPDIR"] = os.environ["SPARK_LOCAL_DIRS"] = tempfile.tempdir = str(self.folder)

    def end_processes(self, pid: int) -> None:
        """Kill the processes of the computation, of which `pid` was the first.

        Also those whose parent has ended, which are not descendants of this process any more.
        """
        kill_all(lambda: [*family(pid), *in_group(pid), *with_environment(_MARK, self.mark)])


@contextmanager
def leftovers() -> Iterator[Leftovers]:
    """Provide the mark and the folder of a computation; delete the folder afterwards.

    Folders of workers that were killed are deleted, too.
    """
    _delete_abandoned()
    name = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
    try:
        yield Leftovers(uuid.uuid4().hex, Path(name))
    finally:
        shutil.rmtree(name, ignore_errors=True)


def _delete_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError):
            is_own = folder.stat().st_uid == os.getuid() and not folder.is_symlink()
            if is_own and owner.isdecimal() and not psutil.pid_exists(int(owner)):
                shutil.rmtree(folder, ignore_errors=True)
