"""Destinations of sinks, and their contents as a reader sees them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyiceberg.catalog import Catalog, load_catalog

from tests.support.sinks import Result, ordered

MINUTES_OF_DAY = 1440
NAMES = ("window_start", "station", "open", "stream", "n", "total", "top")


@dataclass
class Place:
    """A destination: its kind, settings, and a reader of all its rows as they came."""

    kind: str
    settings: dict[str, Any]
    rows: Callable[[], list[dict[str, Any]]]
    # Of a day.
    files: Callable[[str], int] = lambda _: 0

    def newest(self) -> list[Result]:
        """Return the newest row of each window and key."""
        newest: dict[Any, dict[str, Any]] = {}
        for row in sorted(self.rows(), key=lambda row: (row["seq"], row["is_final"])):
            newest[tuple(row[name] for name in NAMES[:4])] = row
        return ordered(tuple(row[name] for name in NAMES) for row in newest.values())


def parquet(folder: Path) -> Place:
    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = ds.dataset(folder, partitioning="hive").to_table().to_pylist()
        return found

    def files(day: str) -> int:
        (manifest,) = (folder / "_weir").glob("*.json")
        names: list[str] = json.loads(manifest.read_text())["days"][day]
        assert {folder / name for name in names} == {*(folder / f"day={day}").iterdir()}
        return len(names)

    return Place("parquet", {"url": folder.as_uri(), "every_s": 1}, rows, files)


def delta(folder: Path) -> Place:
    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = DeltaTable(folder).to_pyarrow_table().to_pylist()
        return found

    def files(day: str) -> int:
        return sum(f"day={day}/" in name for name in DeltaTable(folder).file_uris())

    return Place("delta", {"url": folder.as_uri(), "every_s": 1}, rows, files)


def iceberg(folder: Path) -> Place:
    uri = f"sqlite:///{folder}/catalog.db"
    settings = {"type": "sql", "uri": uri, "warehouse": folder.as_uri()}
    folder.mkdir(exist_ok=True)
    return iceberg_of(load_catalog("weir", type="sql", uri=uri), settings)


def iceberg_of(catalog: Catalog, settings: dict[str, Any]) -> Place:
    """Return a table of a catalog; `settings`: of the sink, those of the catalog."""
    table = "shop.readings"

    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = catalog.load_table(table).scan().to_arrow().to_pylist()
        return found

    def files(day: str) -> int:
        tasks = catalog.load_table(table).scan().plan_files()
        return sum(f"/day={day}/" in task.file.file_path for task in tasks)

    return Place("iceberg", {**settings, "table": table, "every_s": 1}, rows, files)


FILES = {"parquet": parquet, "delta": delta, "iceberg": iceberg}
