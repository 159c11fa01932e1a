"""Input files of commands: a path, or standard input."""

import sys
from pathlib import Path

from controlplane.cli.codes import CliError, ExitCode


def text_of(path: Path) -> str:
    """Return a file's text, or that of standard input for -. Raises `CliError` and `OSError`."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as wrong:
        text = f"{path}: is not UTF-8 at byte {wrong.start}"
        raise CliError(ExitCode.WRONG, text, advice="save it as UTF-8") from None


def bytes_of(path: Path) -> bytes:
    """Return a file's bytes, or those of standard input for -. Raises `OSError`."""
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
