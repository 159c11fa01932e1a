"""One checkpoint takes the place of another, whatever happens in between."""

from pathlib import Path

import pytest

from workers.pipeline.checkpoints.files import create_draft, finish_swap, swap


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint that holds `old`."""
    path = tmp_path / "sf-2"
    path.mkdir()
    (path / "old").touch()
    return path


@pytest.fixture
def draft(checkpoint: Path) -> Path:
    """A draft that holds `new`."""
    path = create_draft(checkpoint)
    (path / "new").touch()
    return path


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir())


def test_the_draft_becomes_the_checkpoint_and_the_old_one_is_kept(
    checkpoint: Path, draft: Path
) -> None:
    """The operator may go back."""
    kept = checkpoint.with_name("sf-2.kept")
    swap(checkpoint, draft, kept)
    assert names(checkpoint) == ["new"]
    assert names(kept) == ["old"]
    assert names(checkpoint.parent) == ["sf-2", "sf-2.kept"]


def test_without_a_plan_the_old_one_stays(checkpoint: Path, draft: Path) -> None:
    """Killed while the draft was written: it may not be whole."""
    finish_swap(checkpoint)
    assert names(checkpoint) == ["old"]
    assert names(create_draft(checkpoint)) == [], "what was left is thrown away"


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_swap_that_was_begun_is_carried_out(checkpoint: Path, draft: Path, steps: int) -> None:
    """Killed after the plan was written, and after each of the two renames."""
    kept = checkpoint.with_name("sf-2.kept")
    plan = checkpoint.with_name("sf-2.swap")
    plan.write_text('{"draft": "sf-2.next", "kept": "sf-2.kept"}')
    if steps >= 1:
        checkpoint.rename(kept)
    if steps >= 2:
        draft.rename(checkpoint)
    finish_swap(checkpoint)
    assert (names(checkpoint), names(kept)) == (["new"], ["old"])
    assert not plan.exists()
