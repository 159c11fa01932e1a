"""Stored projections by landscape, one file each."""

import json
import os
from pathlib import Path

from algorithms.migration.future.projection import Projection


class Store:
    """A folder of projections; files are written atomically."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Projection | None:
        """Return the projection of a landscape, None if it was not computed yet.

        Raises `BadProblem` for a file that holds none.
        """
        try:
            return Projection.read(self.path(key).read_text("utf-8"))
        except FileNotFoundError:
            return None

    def put(self, projection: Projection) -> Path:
        """Store a projection and return its file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(projection.key)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(projection.to_json()), "utf-8")
        part.replace(path)
        return path

    def path(self, key: str) -> Path:
        """Return the file of a landscape's projection."""
        return self.folder / f"{key}.json"
