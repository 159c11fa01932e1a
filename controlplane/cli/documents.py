"""Input files: a path, or standard input."""

import sys
from pathlib import Path

from controlplane.cli.codes import Code, Refused
from controlplane.cluster_spec.document import ClusterDescription
from controlplane.cluster_spec.text import parse_description


def text_of(path: Path) -> str:
    """Return a file's text, or that of standard input for -. Raises `Refused` and `OSError`."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as wrong:
        text = f"{path}: is no UTF-8 at byte {wrong.start}"
        raise Refused(Code.WRONG, text, advice="save it as UTF-8") from None


def description_in(path: Path) -> ClusterDescription:
    """Return the description in a file. Raises `BadDescription` and what `text_of` does."""
    return parse_description(text_of(path))
