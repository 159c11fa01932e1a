"""The context of the page of a run: summaries, claims, times, and the run it is compared with."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from algorithms.experiments import Experiment, Table
from algorithms.vocabulary import ParameterField
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid
from controlplane.lab.comparison import compare
from controlplane.lab.files import panels_of
from controlplane.lab.outcomes import outcomes_of
from controlplane.lab.runs import QueuePlace, comparable_runs, experiment_of, run_by_id
from controlplane.models import LabRun
from dashboard.forms import parameter_title
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
        "estimated": estimate_text(run.estimate),
        "points": len(run.table.get("rows", [])),
        "points_wanted": len(run.values) * len(run.series) * (run.seeds or 1),
        "swept": [plain(float(value)) for value in run.values],
        "fixed": fixed_values(run, chosen),
    }
    if chosen is None or not run.table:
        return context
    return context | _results(run, chosen, sent, actor)


def _results(
    run: LabRun, chosen: Experiment, sent: Mapping[str, str], actor: Actor
) -> dict[str, Any]:
    measure = sent.get("measure", "")
    panels, table = panels_of(chosen, measure), Table.from_json(run.table)
    return {
        "panels": panels,
        "measure": panels[0].y.name,
        "measures": chosen.measures,
        "summaries": [summary(chosen, panel.y, table) for panel in panels],
        "spread": spread_of(chosen, table),
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
        "note": comparison_note(compared, run, other),
    }


def fixed_values(run: LabRun, chosen: Experiment | None) -> list[tuple[str, str, str]]:
    """Return the parameters without the swept one: title, value, and unit."""
    fields: dict[str, ParameterField] = {}
    if chosen is not None:
        fields = {field.name: field for field in chosen.parameters.fields()}
    return [
        (
            parameter_title(fields[name]) if name in fields else name,
            f"{value:,}" if type(value) is int else plain(value),
            fields[name].unit if name in fields else "",
        )
        for name, value in run.parameters.items()
    ]
