"""The wheel of this repository, and environments of its own that have it installed."""

import subprocess
import sys
from pathlib import Path

from controlplane.installation.env import ROOT

UV = (sys.executable, "-m", "uv")
_QUIET = (*UV, "--quiet")
_LOCK = ROOT / "requirements.lock"


def build_wheel(folder: Path) -> Path:
    """Build the wheel into a folder and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def new_environment(folder: Path, *packages: str) -> Path:
    """Create a Python environment with packages, and return its folder of commands."""
    subprocess.run([*_QUIET, "venv", "--python", sys.executable, folder], check=True)
    install(folder / "bin", *packages)
    return folder / "bin"


def install(commands: Path, *arguments: str) -> None:
    """Install packages into an environment, in the locked versions."""
    command: list[str | Path] = [
        *_QUIET,
        "pip",
        "install",
        "--python",
        commands / "python",
        "--constraint",
        _LOCK,
    ]
    subprocess.run([*command, *arguments], check=True)
