"""Printed plans of this process."""

from collections.abc import Mapping
from typing import Any, Final

from controlplane.cli.output import print_table
from controlplane.planning.action_text import ActionText
from controlplane.planning.adapters import measures_of


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
