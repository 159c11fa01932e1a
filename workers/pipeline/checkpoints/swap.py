"""A checkpoint replaces another, atomically.

Two directories cannot change names in one step. So the intent is written first, and the
next process completes it after a crash.
"""

import json
import shutil
from pathlib import Path

from workers.pipeline.checkpoints.bootstrap import fsync_path


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
