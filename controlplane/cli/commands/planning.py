"""weir plan --input: a plan for a described cluster, without a database."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any, Final

from algorithms.errors import BadParameters
from algorithms.interrupts import interruptible
from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.commands.documents import description_in
from controlplane.cli.output import (
    print_facts,
    print_json,
    print_sentence,
    print_table,
    progress_bar,
)
from controlplane.cli.proposal_output import print_measures
from controlplane.cluster_spec.document import ClusterDescription
from controlplane.cluster_spec.planning import PlannedCluster, plan_for
from controlplane.planning.action_text import ActionText
from controlplane.planning.adapters import adapter_of, measures_of
from controlplane.proposals.requests import default_planner

ACTIONS_SHOWN = 20
_ACTION_COLUMNS: Final = {"changes": "text", "of": "name", "from": "text", "to": "text"}


def described(given: Namespace) -> int:
    """Print a plan for a described cluster."""
    planner = given.planner or default_planner()
    parameters = _parameters(planner, given.algorithm, given.param)
    description = description_in(given.input)
    with progress_bar("planning") as bar, interruptible(bar) as report:
        planned = plan_for(description, planner, given.algorithm, parameters, report)
    if given.json:
        print_json(planned.to_json())
    else:
        _print_plan(description, planned)
    return ExitCode.DONE


def _parameters(planner: str, name: str, given: Sequence[str]) -> dict[str, Any]:
    """Return the parameters as their fields have them. Raises `CliError`, `Invalid`."""
    adapter = adapter_of(planner)
    chosen = adapter.algorithm(name)
    fields = {field.name: field for field in adapter.planner.fields(chosen)}
    parameters: dict[str, Any] = {}
    for pair in given:
        key, equals, text = pair.partition("=")
        if not equals:
            raise CliError(ExitCode.WRONG, f"--param {pair}: write NAME=VALUE")
        try:
            parameters[key] = fields[key].parsed(text) if key in fields else float(text)
        except ValueError as wrong:
            reason = str(wrong) if key in fields else "is not a parameter of it, or not a number"
            raise BadParameters({key: [reason]}) from None
    return parameters


def _print_plan(description: ClusterDescription, planned: PlannedCluster) -> None:
    computed = planned.computed
    print_sentence(f"{description.cluster.slug}: {planned.planner} by {planned.algorithm}")
    titles = {item.name: item.title for item in measures_of(planned.planner) if not item.per_node}
    print_measures(titles, computed.before, computed.after, planned.bounds)
    print_facts(
        {
            "actions": computed.predicted["actions"],
            "bytes": computed.predicted["bytes"],
            "least bytes": planned.bounds.get("bytes"),
            "steps": computed.predicted["steps"],
            "newly placed": len(planned.placed) or None,
        }
    )
    nodes = {node.index: node.name for node in description.nodes}
    placed = [["Node", name, None, nodes[node]] for name, node in planned.placed.items()]
    rows = [*placed, *map(_action_cells, planned.texts)]
    print_table(_ACTION_COLUMNS, rows[:ACTIONS_SHOWN], "nothing changes")
    if len(rows) > ACTIONS_SHOWN:
        print_sentence(f"and {len(rows) - ACTIONS_SHOWN:,} more (--json has all)")


def _action_cells(text: ActionText) -> list[Any]:
    """Return an action as a row of a table with `_ACTION_COLUMNS`."""
    return [text.title, text.object, text.before or None, text.after]
