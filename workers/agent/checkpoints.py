"""What a cluster's checkpoint holds, read from Spark's files; and moving one away."""

import json
import time
from pathlib import Path
from typing import Any

from controlplane.services.losses.detect import CheckpointFacts


def read_checkpoint(path: Path) -> CheckpointFacts | None:
    """Return what a checkpoint holds, None where it has no batch that can be read.

    Spark writes `offsets/<n>` before batch n runs and `commits/<n>` once it is whole. A file that
    a full disk has cut off counts as not written.
    """
    offsets = _numbers(path / "offsets")
    begun = next((row for n in reversed(offsets) if (row := _offset(path, n))), None)
    if begun is None:
        return None
    commits = set(_numbers(path / "commits"))
    done = next(
        (row for n in reversed(offsets) if n in commits and (row := _offset(path, n))), None
    )
    return CheckpointFacts(
        whole=int(done["batch"]) if done else None,
        begun=int(begun["batch"]),
        version=int(begun["version"]),
        moving=done is not None and done.get("before") is not None,
    )


def set_aside(path: Path) -> str:
    """Rename a checkpoint so that a new one can begin in its place; return the new name."""
    aside = path.with_name(f"{path.name}.older-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
    path.rename(aside)
    return aside.name


def _numbers(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return sorted(int(file.name) for file in directory.iterdir() if file.name.isdigit())


def _offset(path: Path, batch: int) -> dict[str, Any] | None:
    """Return the end of a batch: the third line of its file, as Weir's source wrote it."""
    try:
        row = json.loads((path / "offsets" / str(batch)).read_text().splitlines()[2])
    except (OSError, ValueError, IndexError):
        return None
    return row if isinstance(row, dict) and {"batch", "version"} <= row.keys() else None
