"""weir lab: the experiments of the Lab, at the terminal, without database and worker."""

import json
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

from algorithms.experiments import EXPERIMENTS, experiments
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import print_json, print_rows, values_of


def list_experiments(given: Namespace) -> None:
    """Print the experiments, of all planners or of one."""
    if given.planner and given.planner not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise Refused(Code.WRONG, f"there are no experiments of {given.planner}", [known])
    rows = [
        {"planner": planner, "experiment": experiment.name, "title": experiment.title}
        for planner in ([given.planner] if given.planner else EXPERIMENTS)
        for experiment in experiments(planner)
    ]
    kinds = {"planner": "text", "experiment": "text", "title": "name"}
    print_rows(given, rows, {name: (name, kind) for name, kind in kinds.items()})


def run_experiment(given: Namespace) -> None:
    """Run an experiment and print its summary, or with --json every row."""
    try:
        if not given.json:
            call_command("lab", given.planner, given.experiment, **_options(given, given.out))
            return
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "rows.json"
            with (Path(folder) / "table").open("w") as table:
                call_command("lab", given.planner, given.experiment, stdout=table,
                             **_options(given, out))  # fmt: skip
            print_json(json.loads(out.read_text(encoding="utf-8")))
    except CommandError as wrong:
        raise Refused(Code.WRONG, str(wrong), advice="weir lab list") from None


def _options(given: Namespace, out: Path | None) -> dict[str, Any]:
    return values_of(given, "param values series seeds") | {"out": out}
