"""Compute the stored results of the experiments: `python -m algorithms.lab.references [NAME ...]`.

One seed, and workloads of a tenth of the papers' size, or as large as the claims need.
"""

import json
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from algorithms.errors import PlanningError
from algorithms.lab.experiment import Experiment
from algorithms.lab.experiments import EXPERIMENTS
from algorithms.lab.references import reference_path

# Smaller than the defaults, where an experiment has the parameter.
_SMALL: Final[dict[str, Any]] = {
    "seeds": 1, "queries": 5_000, "steps": 20_000, "lifetime": 2_000.0, "churn_every": 1_000,
    "migrations": 20, "rounds": 2, "paths": 32, "known": 100, "messages": 60_000,
    "distinct": 20_000, "duration_s": 300, "streams": 40, "points": 30, "lp_values": 1_000,
}  # fmt: skip
# These sweep what is reduced, and keep their defaults otherwise.
_VALUES: Final[dict[str, tuple[float, ...]]] = {
    "fig3d": (2_000.0, 5_000.0, 10_000.0, 20_000.0),
    "fig4d": (2_000.0, 5_000.0, 10_000.0, 20_000.0),
    "fig5d": (10.0, 100.0, 1_000.0, 10_000.0),
    "fig6d": (300.0, 1_000.0, 3_000.0, 10_000.0),
    "trips": (20.0, 50.0, 100.0),
    "trips_live": (10.0, 50.0, 100.0),
}
# They keep the whole time and load: growing load, or the windows after the warm-up.
_WHOLE_TIME: Final = ("fig14", "panes")
_LOAD: Final = ("duration_s", "streams")
# It runs a pipeline of its own, and measures the machine: it is computed by name alone.
_LIVE: Final = "migration-fig15"
_DIGITS: Final = 6


def main(names: Sequence[str]) -> int:
    """Compute these references, by default all but `_LIVE`; return 1 if one failed."""
    known = {
        f"{item.planner}-{item.name}": item
        for experiments in EXPERIMENTS.values()
        for item in experiments
    }
    failed = 0
    for key in names or [key for key in known if key != _LIVE]:
        started = time.monotonic()
        try:
            _write(known[key])
        except (PlanningError, OSError) as refused:
            failed += 1
            sys.stderr.write(f"{key}: {refused}\n")
            continue
        sys.stdout.write(f"{key}: {time.monotonic() - started:.1f} s\n")
        sys.stdout.flush()
    return int(failed > 0)


def _write(item: Experiment) -> None:
    # The claims decide nothing on less.
    values = _SMALL | {name: max(_SMALL.get(name, 0), least) for name, least in item.claim_scale}
    small = {
        field.name: values[field.name]
        for field in item.parameters.fields()
        if field.name in _SMALL and field.name != item.x.name
        and not (field.name in _LOAD and item.name in _WHOLE_TIME)
        and field.default != values[field.name]
    }  # fmt: skip
    table = item.run(item.parameters.from_mapping(small), _VALUES.get(item.name))
    # Largest files would have every measure; pages draw those of the panels.
    drawn = [item.x.name, "series", "seed", *(panel.y.name for panel in item.panels)]
    places = [table.columns.index(name) for name in drawn]
    rows = [[_short(row[place]) for place in places] for row in table.rows]
    value = {"parameters": small, "columns": drawn, "rows": rows}
    text = json.dumps(value, separators=(",", ":"))
    reference_path(item.planner, item.name).write_text(text + "\n", "utf-8")


def _short(cell: Any) -> Any:
    return float(f"{cell:.{_DIGITS}g}") if isinstance(cell, float) else cell


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
