"""Files of descriptions: one, or all of a directory."""

from pathlib import Path
from typing import Final

from controlplane.cluster_spec.document import BadDescription

_ENDINGS: Final = frozenset({".yaml", ".yml", ".json"})
MAX_FILES: Final = 1000


def files_in(path: Path) -> list[Path]:
    """Return a path itself, or of a directory its YAML and JSON files by name, without subfolders.

    Raises `BadDescription` for none or too many, and `OSError`.
    """
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix in _ENDINGS and not file.name.startswith(".") and file.is_file()
    )
    if not 1 <= len(files) <= MAX_FILES:
        text = f"Has {len(files)} files *.yaml, *.yml and *.json: must be 1 to {MAX_FILES}"
        raise BadDescription({str(path): [text]})
    return files
