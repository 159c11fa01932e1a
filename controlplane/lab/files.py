"""Runs as files: every row as CSV or JSON, the figure as SVG."""

import json
from collections.abc import Mapping
from typing import Any

from algorithms.lab.experiments import Experiment, Panel, Table
from controlplane.formats.csv_lines import csv_lines
from controlplane.lab.drawing import figure_svg


def csv_of(table: Table) -> str:
    """Return the rows as CSV with a header."""
    return csv_lines([table.columns, *table.rows])


def json_of(planner: str, name: str, parameters: Mapping[str, Any], table: Table) -> str:
    """Return experiment, parameters and rows as JSON."""
    run = {"planner": planner, "experiment": name, "parameters": dict(parameters)}
    return json.dumps(run | table.to_json(), indent=1, allow_nan=False) + "\n"


def svg_of(
    experiment: Experiment, parameters: Mapping[str, Any], table: Table, measure: str = ""
) -> str:
    """Return the figure of a measure as SVG, by default that of the first panel."""
    panel = panels_of(experiment, measure)[0]
    seeds = parameters.get("seeds", 1)
    note = f"{panel.title}; mean of {seeds} seed{'' if seeds == 1 else 's'}"
    if seeds != 1:
        note += ", whiskers: smallest and largest"
    return figure_svg(experiment, panel, table, note)


def panels_of(experiment: Experiment, measure: str = "") -> tuple[Panel, ...]:
    """Return the experiment's own panels, or one of the measure that is named."""
    if measure not in experiment.measures:
        return experiment.panels
    return (Panel(experiment.title, experiment.axis_of(measure)),)
