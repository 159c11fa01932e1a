"""Compute projected migration costs beforehand: `python -m workers.lab.precompute --help`."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from algorithms.errors import PlanningError
from algorithms.interrupts import interruptible
from algorithms.lab.json_files import read_json
from algorithms.lab.migration.future.learning import Runner
from algorithms.lab.migration.future.planners import Mtm
from algorithms.lab.migration.future.projection import Projection
from algorithms.lab.migration.planner import PLANNER as MIGRATION_PLANNER
from controlplane.processes.runtime.errors import CheckFailed
from workers.lab.spark_sessions import session_at

_BAD_INPUT, _INTERRUPTED = 2, 130
# What projected costs depend on; the rest of mtm's parameters is about decisions.
_PARAMETERS = ("tau", "gamma", "rounds", "seed")


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


def runner_on(session: SparkSession) -> Runner:
    """Return a runner of jobs on the session, one Spark task each."""

    def run(function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterable[Any]:
        spread = session.sparkContext.parallelize(list(jobs), len(jobs))
        result: list[Any] = spread.map(function).collect()
        return result

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is not kept yet and print its file."""
    options = _parser().parse_args(arguments)
    try:
        print(computed(options))
    except (PlanningError, CheckFailed) as refused:
        print(f"precompute: {refused}", file=sys.stderr)
        return _BAD_INPUT
    except KeyboardInterrupt:
        print("precompute: cancelled; nothing was kept", file=sys.stderr)
        return _INTERRUPTED
    return 0


def computed(options: argparse.Namespace) -> Path:
    """Return the file of the projection that a problem needs."""
    given = {name: getattr(options, name) for name in _PARAMETERS}
    values = {name: value for name, value in given.items() if value is not None}
    mtm: Mtm
    foreseen, mtm = MIGRATION_PLANNER.problem_and_parameters(
        MIGRATION_PLANNER.algorithm("mtm"),
        read_json(options.input),
        {**values, "method": "learned"},
    )
    landscape = mtm.landscape(foreseen)
    store = Store(options.store)
    if store.get(landscape.key) is not None and not options.again:
        return store.path(landscape.key)
    with (
        session_at(options.master, options.store, "weir-precompute") as session,
        interruptible(_print_progress) as report,
    ):
        projection = mtm.projection(foreseen, runner_on(session), report)
    if not isinstance(projection, Projection):
        raise TypeError("the planner has not returned a learned projection")
    path = store.put(projection)
    _print_progress(1.0)
    return path


def _print_progress(share: float) -> None:
    print(f"precompute: {share:4.0%}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workers.lab.precompute", description=__doc__)
    add = parser.add_argument
    add("--input", required=True, help="problem of `algorithms migration mtm`; - reads stdin")
    add("--master", default="local[*]", help="Spark master (default: %(default)s)")
    add("--store", type=Path, default=Path("projections"), help="folder (default: %(default)s)")
    for field in MIGRATION_PLANNER.fields(MIGRATION_PLANNER.algorithm("mtm")):
        if field.name in _PARAMETERS:
            about = f"{field.help} (default: {field.default})"
            add(f"--{field.name}", type=field.parsed, help=about.replace("%", "%%"))
    add("--again", action="store_true", help="compute existing files again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
