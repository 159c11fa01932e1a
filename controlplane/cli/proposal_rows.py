"""Printed plans and executions of this process."""

from collections.abc import Mapping
from typing import Any, Final

from controlplane.cli.output import print_table, values_of
from controlplane.executions.progress import progress_of, waiting_for
from controlplane.models import Execution, Proposal, Step
from controlplane.planning.action_text import ActionText
from controlplane.planning.adapters import measures_of


def execution_row(proposal: Proposal) -> dict[str, Any] | None:
    """Return how far the execution is, None before it starts."""
    execution = Execution.objects.filter(proposal=proposal).first()
    if execution is None:
        return None
    step = Step.objects.filter(execution=execution).order_by("-number").first()
    progress = progress_of(execution)
    return {
        **values_of(execution, "direction done undone"),
        "of": len(proposal.actions),
        **values_of(progress, "applied skipped"),
        **values_of(execution, "cap cap_reason started_at finished_at"),
        "waits": waiting_for(proposal, execution.waits) or None,
        "step": None if step is None else step.number,
    }


def print_measures(
    planner: str, before: Mapping[str, Any], after: Mapping[str, Any], bounds: Mapping[str, float]
) -> None:
    """Print the measures of the cluster before and after a plan, and their bounds."""
    rows = [
        [measure.title, before.get(measure.name), after.get(measure.name), bounds.get(measure.name)]
        for measure in measures_of(planner)
        if not measure.per_node
    ]
    columns = {"measure": "text", "before": "number", "after": "number", "bound": "number"}
    print_table(columns, rows)


ACTION_COLUMNS: Final = {"changes": "text", "of": "name", "from": "text", "to": "text"}


def action_cells(text: ActionText) -> list[Any]:
    """Return an action as a row of a table with `ACTION_COLUMNS`."""
    return [text.title, text.object, text.before or None, text.after]
