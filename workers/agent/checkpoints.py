"""Checkpoints of clusters: reading Spark's files, and renaming."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from controlplane.health.losses.detection import CheckpointFacts
from workers.pipeline.checkpoints.files import batches_in


def read_checkpoint(path: Path) -> CheckpointFacts | None:
    """Return the facts of a checkpoint, None if it has no readable batch.

    Spark writes `metadata` when a query first starts, `offsets/<n>` before batch n runs and
    `commits/<n>` after its end. A truncated file (full disk) counts as missing. A directory without
    `metadata` was removed under a running query. The bootstrap of a checkpoint that was made from
    another one represents the newest batch of that one.
    """
    seed = _seed(path)
    offsets = batches_in(path / "offsets") if (path / "metadata").exists() else []
    commits = set(batches_in(path / "commits"))
    started = _newest(path, offsets) or seed
    done = _newest(path, [n for n in offsets if n in commits]) or seed
    if started is None:
        return None
    return CheckpointFacts(
        whole=int(done["batch"]) if done else None,
        started=int(started["batch"]),
        version=int(started["version"]),
        moving=done is not None and done.get("before") is not None,
    )


def is_settled(path: Path) -> bool:
    """Return whether no swap of the checkpoint is in progress."""
    return not path.with_name(f"{path.name}.swap").exists()


def set_aside(path: Path) -> str:
    """Rename a checkpoint to make room for a new one; return the new name.

    Returns "" without a checkpoint.
    """
    if not path.exists():
        return ""
    aside = path.with_name(f"{path.name}.older-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
    path.rename(aside)
    return aside.name


def _newest(path: Path, batches: Sequence[int]) -> dict[str, Any] | None:
    """Return the end of the newest readable batch."""
    return next((row for n in reversed(batches) if (row := _offset(path, n))), None)


def _seed(path: Path) -> dict[str, Any] | None:
    """Return the start offset of a bootstrap, None without one."""
    try:
        row = json.loads((path / "seed" / "seed.json").read_text())["offset"]
    except (OSError, ValueError, KeyError):
        return None
    return row if isinstance(row, dict) else None


def _offset(path: Path, batch: int) -> dict[str, Any] | None:
    """Return the end of a batch: the third line of its file, as Weir's source wrote it."""
    try:
        row = json.loads((path / "offsets" / str(batch)).read_text().splitlines()[2])
    except (OSError, ValueError, IndexError):
        return None
    return row if isinstance(row, dict) and {"batch", "version"} <= row.keys() else None
