"""Compilation of the hot loops; the compiled code stays on disk between processes.

numba keeps the code of each function until the function's own file changes, and does not see
changes of the functions that it calls. So the folder in which it keeps code is named after the
text of all files with compiled functions: another version does not use it.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

_SOURCES = Path(__file__).parent


def compiled(function: F) -> F:
    """Compile `function` with numba on its first call; its static type stays."""
    return cast("F", numba.njit(cache=True)(function))


def inlined(function: F) -> F:
    """Compile `function` into its callers: in the hottest loops a call costs more than its work.

    What a call costs there is counting references to every array that it is given.
    """
    return cast("F", numba.njit(cache=True, inline="always")(function))


def _version() -> str:
    """Return a hash of all files that hold compiled functions."""
    digest = hashlib.sha256()
    for path in sorted(_SOURCES.rglob("*.py")):
        text = path.read_bytes()
        if b"algorithms.compiled" in text:
            digest.update(str(path.relative_to(_SOURCES)).encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def _keep_code() -> None:
    """Name the folder for compiled code: beside the source, or else in the user's cache."""
    # numba finds a folder for modules in an archive, and compares the time of the archive.
    if os.environ.get("NUMBA_CACHE_DIR") or not _SOURCES.is_dir():
        return
    version = _version()
    for parent in (_SOURCES / "__pycache__", Path.home() / ".cache" / "weir"):
        folder = parent / f"compiled-{version}"
        with suppress(OSError):
            if not folder.is_dir():
                folder.mkdir(parents=True)
                _forget_others(folder)
            if os.access(folder, os.W_OK):
                # numba makes the names of its settings at run time.
                numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
                return


def _forget_others(folder: Path) -> None:
    for other in folder.parent.glob("compiled-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


_keep_code()
