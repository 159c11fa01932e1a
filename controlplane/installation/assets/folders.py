"""Folders of what Weir installs beside its own files. Imported by the settings: no Django here."""

import os
import sys
from pathlib import Path
from typing import Final

# The list of collected files, written last.
MANIFEST: Final = "staticfiles.json"


def environment_folder() -> Path:
    """Return the folder of the Python environment that holds what Weir installs there."""
    return Path(sys.prefix) / "share" / "weir"


def static_root(environment: Path, data: Path) -> Path:
    """Return the folder of collected files: of the environment if it has them or is writable.

    Otherwise a folder of the data. All data directories of one environment share what it collected.
    """
    if has_manifest(environment / "static"):
        return environment / "static"
    existing = next(folder for folder in (environment, *environment.parents) if folder.exists())
    return (environment if os.access(existing, os.W_OK) else data) / "static"


def has_manifest(root: Path) -> bool:
    """Return whether static files were collected into the folder."""
    return (root / MANIFEST).is_file()
