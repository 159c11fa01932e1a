"""manage.py lab: run an experiment in the terminal, without database and workers."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from algorithms.errors import BadParameters, PlanningError
from algorithms.interrupts import interruptible
from algorithms.lab.experiments import (
    EXPERIMENTS,
    Experiment,
    Repeated,
    Table,
    experiment,
    experiments,
)
from controlplane.child_processes.errors import ChildDied, Exhausted
from controlplane.cli.output import progress_bar
from controlplane.errors import TooExpensive
from controlplane.lab.estimates import estimate_run
from controlplane.lab.files import csv_of, json_of, svg_of
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.limits import lab_limits
from dashboard.lab.files import html_of
from dashboard.lab.forms import numbers
from dashboard.lab.summary import summary, summary_lines

WRITERS = (".csv", ".json", ".svg", ".html")
INTERRUPTED = 130  # the exit code of shells after Ctrl-C


class Command(BaseCommand):
    """List experiments, or run one, print its table, and write it to a file."""

    help = "Run an experiment of the Lab; without arguments, list the experiments."
    # The command uses no database.
    requires_migrations_checks = False
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments: experiment, parameters, values, series and file."""
        parser.add_argument("planner", nargs="?", default="list", help="planner, or list")
        parser.add_argument("experiment", nargs="?", help="name; without it, the planner's list")
        parser.add_argument(
            "--param", action="append", default=[], metavar="NAME=VALUE", help="may be repeated"
        )
        parser.add_argument("--values", nargs="+", metavar="X", help="values of its parameter")
        parser.add_argument("--series", nargs="+", metavar="NAME", help="series to compare")
        parser.add_argument("--seeds", metavar="N", help="workloads per point")
        parser.add_argument(
            "--out",
            type=Path,
            help="file: .csv or .json (every row), .svg or .html (figure)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """List experiments, or run one."""
        try:
            if options["experiment"] is None:
                self._list(options["planner"])
            else:
                self._run(options)
        except (PlanningError, TooExpensive, Exhausted, ChildDied) as wrong:
            raise CommandError(str(wrong)) from None
        except KeyboardInterrupt:
            self.stderr.write("interrupted")
            sys.exit(INTERRUPTED)

    def _list(self, planner: str) -> None:
        if planner not in ("list", *EXPERIMENTS):
            known = ", ".join(EXPERIMENTS)
            raise CommandError(f"there are no experiments of {planner!r}; planners: {known}")
        for name in EXPERIMENTS if planner == "list" else (planner,):
            for item in experiments(name):
                self.stdout.write(f"{name} {item.name:<12} {item.title}")

    def _run(self, options: dict[str, Any]) -> None:
        chosen = experiment(options["planner"], options["experiment"])
        out: Path | None = options["out"]
        _check_file(out)
        parameters = _parameters(chosen, options["param"], options["seeds"])
        values = _values(options["values"])
        chosen.points(parameters, chosen.values if values is None else values)
        series = chosen.checked_series(options["series"] or chosen.series)
        estimate_run(chosen, parameters, chosen.values if values is None else values, series)
        with progress_bar(chosen.name) as bar, interruptible(bar) as report:

            def watch(share: float) -> bool:
                report(share)
                return True

            table = run_in_child(
                lambda progress: chosen.run(parameters, values, series, progress),
                lab_limits(),
                watch,
            )
        for panel in chosen.panels:
            self.stdout.write(f"{panel.title}: {panel.y.label}")
            self.stdout.write("\n".join(summary_lines(summary(chosen, panel.y, table))))
        if out is not None:
            _write(out, chosen, parameters, table)
            self.stdout.write(f"written: {out}")


def _parameters(chosen: Experiment, texts: list[str], seeds: str | None) -> Repeated:
    """Return the parameters of name=value arguments. Raises `BadParameters`."""
    known = {field.name: field for field in chosen.parameters.fields()}
    given: dict[str, Any] = {}
    for text in [*texts, *([] if seeds is None else [f"seeds={seeds}"])]:
        name, equals, value = text.partition("=")
        if not equals:
            raise CommandError(f"--param {text}: write name=value")
        if name == chosen.x.name:
            raise CommandError(f"--param {text}: {name} is swept; write --values {value}")
        if name not in known:
            names = ", ".join(field for field in known if field != chosen.x.name)
            raise CommandError(f"--param {text}: {chosen.name} has no {name}; it has {names}")
        try:
            given[name] = known[name].parsed(value)
        except ValueError as wrong:
            raise BadParameters({name: [str(wrong)]}) from None
    return chosen.parameters.from_mapping(given)


def _values(texts: list[str] | None) -> list[float] | None:
    try:
        return None if texts is None else numbers(" ".join(texts))
    except ValueError as wrong:
        raise BadParameters({"values": [str(wrong)]}) from None


def _check_file(out: Path | None) -> None:
    """Raise an error if the file cannot be written, before the run starts."""
    if out is None:
        return
    if out.suffix not in WRITERS:
        raise CommandError(f"--out {out}: the name must end in {', '.join(WRITERS)}")
    if not out.parent.is_dir():
        raise CommandError(f"--out {out}: there is no folder {out.parent}")


def _write(out: Path, chosen: Experiment, parameters: Repeated, table: Table) -> None:
    kept = {n: value for n, value in parameters.to_mapping().items() if n != chosen.x.name}
    texts = {
        ".csv": lambda: csv_of(table),
        ".json": lambda: json_of(chosen.planner, chosen.name, kept, table),
        ".svg": lambda: svg_of(chosen, kept, table),
        ".html": lambda: html_of(chosen, kept, table),
    }
    try:
        out.write_text(texts[out.suffix](), encoding="utf-8")
    except OSError as refused:
        raise CommandError(f"--out {out}: {refused.strerror}") from None
