"""Files of a run: CSV and JSON with every row, HTML with the figure."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from algorithms.experiments import Experiment, Table
from dashboard.figures.lab import lab_figures, panels_of
from dashboard.figures.standalone import drawing
from dashboard.lab.summary import plain, summary


def csv_of(table: Table) -> str:
    """Return the rows as CSV with a header."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return written.getvalue()


def json_of(planner: str, name: str, parameters: Mapping[str, Any], table: Table) -> str:
    """Return experiment, parameters and rows as JSON."""
    run = {"planner": planner, "experiment": name, "parameters": dict(parameters)}
    return json.dumps(run | table.to_json(), indent=1, allow_nan=False) + "\n"


def html_of(
    experiment: Experiment, parameters: Mapping[str, Any], table: Table, measure: str = ""
) -> str:
    """Return a standalone page with figures, parameters and the summary table."""
    figures = lab_figures(experiment, table, measure)
    drawings = [
        # Plotly's HTML, which escapes its data.
        mark_safe(drawing(figure, name, with_plotly=place == 0))  # noqa: S308
        for place, (name, figure) in enumerate(figures.items())
    ]
    summaries = [summary(experiment, p.y, table) for p in panels_of(experiment, measure)]
    context = {
        "experiment": experiment,
        "parameters": {name: plain(value) for name, value in parameters.items()},
        "drawings": drawings,
        "summaries": summaries,
    }
    return render_to_string("dashboard/lab_file.html", context)
