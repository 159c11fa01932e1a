"""weir lab run: an experiment in this process, without database and worker."""

import json
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.output import print_json


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
        raise CliError(ExitCode.WRONG, str(wrong), advice="weir lab list") from None


def _options(given: Namespace, out: Path | None) -> dict[str, Any]:
    return {name: vars(given)[name] for name in ("param", "values", "series", "seeds")} | {
        "out": out
    }
