"""Checkouts of Weir that benchmarks compare with each other."""

import subprocess
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parents[1]


def checkout(path: str) -> Path:
    """Return the folder that an option names."""
    return Path(path).resolve()


def require_checkout(path: Path, benchmark: str) -> None:
    """Raise `SystemExit` unless a path is another checkout that has the same benchmark."""
    if path.resolve() == HERE:
        raise SystemExit(f"{path} is this checkout")
    for part in (benchmark, "workers/pipeline/__main__.py", "../shared/data"):
        if not (path / part).exists():
            raise SystemExit(f"{path / part} is missing: give a git worktree beside this one")


def commit_of(checkout: Path) -> str:
    """Return the commit of a checkout as git describes it, with -dirty for local changes."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()
