"""weir lab list, export, and run: an experiment in this process, without database and worker."""

import json
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from django.core.management import CommandError, call_command

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import path_of
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import print_json, print_rows, values_of

_COLUMNS: Final = {"planner": "text", "experiment": "text", "title": "name"}


def list_experiments(given: Namespace) -> None:
    """Print the experiments, of all planners or of one."""
    experiments = api_of(given).get("/lab/experiments")
    names = ("planner", "name", "title")
    known = dict.fromkeys(row["planner"] for row in experiments)
    if given.planner and given.planner not in known:
        text = f"there are no experiments of {given.planner}"
        raise Refused(Code.WRONG, text, [", ".join(known)])
    rows = [
        dict(zip(_COLUMNS, (row[name] for name in names), strict=True))
        for row in experiments
        if given.planner in ("", row["planner"])
    ]
    print_rows(given, rows, {name: (name, kind) for name, kind in _COLUMNS.items()})


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


def export_run(given: Namespace) -> None:
    """Print the rows of a run as CSV or JSON, or its figure as SVG."""
    query = {"format": given.format, "measure": given.measure}
    path = path_of("/lab/runs/{id}/export", vars(given))
    sys.stdout.write(api_of(given).answer("GET", path, query).text)


def _options(given: Namespace, out: Path | None) -> dict[str, Any]:
    return values_of(given, "param values series seeds") | {"out": out}
