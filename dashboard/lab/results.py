"""What the pages of runs and experiments show: summaries, claims, times, and comparisons."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils import timezone

from algorithms.lab.experiments import Experiment, Table, series_title
from algorithms.lab.references import reference_of
from algorithms.vocabulary import ParameterField, title_of_name
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.lab.catalog import Result
from controlplane.lab.comparison import ParameterDifference, compare
from controlplane.lab.files import panels_of
from controlplane.lab.outcomes import outcomes_of
from controlplane.lab.runs import QueuePlace, comparable_runs, experiment_of, run_by_id
from controlplane.models import LabRun
from controlplane.numbers import MISSING
from dashboard.lab.headlines import experiment_headline
from dashboard.lab.run_page import (
    claim_rows,
    comparison_note,
    estimate_text,
    headline_of,
    place_text,
    rest_of,
    spread_of,
    times_of,
)
from dashboard.lab.summary import plain, summary
from dashboard.lab.tiles import run_tiles

# The files of a result, by their kind.
FILES = {
    "csv": "table.csv", "json": "table.json", "svg": "figure.svg", "html": "figure.html",
}  # fmt: skip
# Of the page of a run and of its parts: the drawn measure, the other run, and how both are drawn.
RUN_PARAMETERS = frozenset({"measure", "with", "how"})


def run_context(
    run: LabRun, sent: Mapping[str, str], actor: Actor, place: QueuePlace | None
) -> dict[str, Any]:
    """Return what the page of a run shows; `sent`: the values of its URL, `place`: if it waits."""
    chosen = experiment_of(run)
    now = timezone.now()
    outcomes = None
    if chosen is not None and run.state == LabRun.State.DONE and run.table:
        outcomes = outcomes_of(chosen, Table.from_json(run.table), run.parameters)
    context: dict[str, Any] = {
        "headline": headline_of(run, outcomes, place_text(place) or rest_of(run, now)),
        "outcomes": outcomes,
        "claims": claim_rows(outcomes) if outcomes else [],
        "times": times_of(run),
        "tiles": run_tiles(run, outcomes, None),
        "estimated": estimate_text(run.estimate),
        "points": len(run.table.get("rows", [])),
        "swept": [plain(float(value)) for value in run.values],
        "series_titles": [series_title(run.planner, run.experiment, name) for name in run.series],
        "fixed": titled_values(run.parameters, chosen),
    }
    if chosen is None or not run.table:
        return context
    spread = spread_of(chosen, Table.from_json(run.table))
    context["tiles"] = run_tiles(run, outcomes, spread)
    return context | _results(run, chosen, sent, actor)


def _results(
    run: LabRun, chosen: Experiment, sent: Mapping[str, str], actor: Actor
) -> dict[str, Any]:
    measure = sent.get("measure", "")
    panels, table = panels_of(chosen, measure), Table.from_json(run.table)
    return {
        "panels": panels,
        "measure": panels[0].y.name,
        "measures": [chosen.axis_of(name) for name in chosen.measures],
        "summaries": [summary(chosen, panel.y, table) for panel in panels],
        **_comparison(run, chosen, sent, actor),
    }


def _comparison(
    run: LabRun, chosen: Experiment, sent: Mapping[str, str], actor: Actor
) -> dict[str, Any]:
    """Return the runs to choose from, and the comparison with the chosen one."""
    others = comparable_runs(run, actor)
    number = sent.get("with", "")
    context = {"others": others, "how": sent.get("how", "ratio")}
    if not number.isdecimal():
        return context
    other = run_by_id(int(number), actor)
    try:
        compared = compare(chosen, run, other, sent.get("measure", ""))
    except (Conflict, Invalid) as refused:
        return context | {"comparison_refused": str(refused)}
    return context | {
        "other": other,
        "comparison": compared,
        "differences": difference_rows(compared.differences, chosen),
        "note": comparison_note(compared, run, other),
    }


def result_context(
    chosen: Experiment, newest: LabRun | None, result: Result | None
) -> dict[str, Any]:
    """Return what the page of an experiment shows of its newest result.

    `newest`: the newest finished run, `result`: its result, else the stored one.
    """
    outcomes = result.outcomes if result is not None else None
    names = (chosen.planner, chosen.name)
    context: dict[str, Any] = {
        "newest": newest,
        "result": result,
        "headline": experiment_headline(chosen, outcomes, newest, timezone.now()),
        "claims": claim_rows(outcomes) if outcomes is not None else [],
    }
    if newest is not None:
        return context | {"charts_url": reverse("lab-charts", args=[newest.pk])}
    reference = reference_of(chosen)
    if reference is None:
        return context
    return context | {
        "charts_url": reverse("lab-stored-charts", args=names),
        "files": [(kind.upper(), reverse(f"lab-stored-{kind}", args=names)) for kind in FILES],
        "stored": titled_values(reference.parameters, chosen),
    }


def titled_values(
    parameters: Mapping[str, Any], chosen: Experiment | None
) -> list[tuple[str, str, str]]:
    """Return parameters as texts: title, value, and unit; `chosen`: None if it is not installed."""
    fields: dict[str, ParameterField] = {}
    if chosen is not None:
        fields = {field.name: field for field in chosen.parameters.fields()}
    return [
        (
            fields[name].title if name in fields else title_of_name(name),
            _value_text(value),
            fields[name].unit if name in fields else "",
        )
        for name, value in parameters.items()
    ]


def titled_faults(chosen: Experiment, faults: Fields) -> Fields:
    """Return the faults of a form by the titles of its fields."""
    titles = _titles_of(chosen)
    return {titles.get(name) or title_of_name(name): texts for name, texts in faults.items()}


def difference_rows(
    differences: Sequence[ParameterDifference], chosen: Experiment
) -> list[tuple[str, str, str]]:
    """Return what differs between two runs as texts: title, the value here, and the other one."""
    titles = _titles_of(chosen)
    return [
        (
            titles.get(item.name) or title_of_name(item.name),
            _difference_text(item.name, item.this),
            _difference_text(item.name, item.other),
        )
        for item in differences
    ]


def _titles_of(chosen: Experiment) -> dict[str, str]:
    """Return the titles of the parameters and of the other fields of a run."""
    titles = {field.name: field.title for field in chosen.parameters.fields()}
    return titles | {"values": chosen.x.label, "master": "Computed by"}


def _difference_text(name: str, value: Any) -> str:
    if name == "master":
        return str(value or "the Lab's worker")
    if name == "values":
        return ", ".join(plain(float(item)) for item in value)
    return MISSING if value is None else _value_text(value)


def _value_text(value: Any) -> str:
    return f"{value:,}" if type(value) is int else plain(value)
