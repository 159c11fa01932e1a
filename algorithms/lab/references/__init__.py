"""Stored results of the experiments, computed by Weir with few seeds and smaller workloads.

The Lab draws them where no run has finished yet. `python -m algorithms.lab.references` computes
them, the measured one (migration fig15) by its name only.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from algorithms.lab.experiment import Experiment
from algorithms.lab.json_files import read_json
from algorithms.lab.tables import Table

FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True)
class Reference:
    """A stored result: the parameters that differ from the defaults, and its table."""

    parameters: dict[str, Any]
    table: Table


def reference_path(planner: str, name: str) -> Path:
    """Return the file of the reference of an experiment."""
    return FOLDER / f"{planner}-{name}.json"


def reference_of(experiment: Experiment) -> Reference | None:
    """Return the stored result of an experiment, None if it has none."""
    return _read(experiment.planner, experiment.name)


@cache
def _read(planner: str, name: str) -> Reference | None:
    path = reference_path(planner, name)
    if not path.exists():
        return None
    value = read_json(str(path))
    return Reference(value["parameters"], Table.from_json(value))
