"""Printed proposals."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from controlplane.access.roles import Actor
from controlplane.cli.output import print_facts, print_json, print_sentence, print_table, values_of
from controlplane.executions import verbs
from controlplane.executions.progress import progress_of, waiting_for
from controlplane.models import Execution, Proposal, Step
from controlplane.planning.action_text import ActionText, action_text, names_of
from controlplane.planning.adapters import measures_of


def proposal_row(actor: Actor, proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as JSON values, with its actions and what the actor may do with it."""
    return {
        "id": proposal.pk,
        "cluster": proposal.cluster.slug,
        **values_of(proposal, "planner algorithm parameters state progress"),
        **values_of(proposal, "requested_by requested_at"),
        "approved_by": proposal.approved_by or None,
        "seal": proposal.seal or None,
        **values_of(proposal, "before after bounds predicted rollback_cost imbalance_after"),
        "actions": proposal.plan.to_json(),
        "review": proposal.review or None,
        "drift": proposal.drift or None,
        "drifting_since": proposal.drifting_since,
        "error": proposal.error or None,
        "execution": execution_row(proposal),
        "verbs": [verb.path for verb in verbs.offered(actor, proposal)],
    }


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


def print_proposal(given: Namespace, actor: Actor, proposal: Proposal, actions: int) -> None:
    """Print a proposal with its first actions, or as JSON with all."""
    row = proposal_row(actor, proposal)
    if given.json:
        print_json(row)
        return
    running, predicted = row["execution"], row["predicted"]
    print_facts(
        {
            "proposal": f"{proposal.pk}, {proposal.planner} by {proposal.algorithm}",
            "cluster": row["cluster"],
            "state": row["state"],
            "asked by": f"{row['requested_by']}, {row['requested_at']:%Y-%m-%d %H:%M} UTC",
            "approved by": row["approved_by"],
            "why": row["error"],
            "actions": predicted.get("actions"),
            "bytes": predicted.get("bytes"),
            "executed": running and _executed(running),
            "waits": running and running["waits"],
            "may be done": ", ".join(row["verbs"]) or None,
        }
    )
    if row["seal"]:
        # On a line of its own, whole: it is copied.
        print_sentence(f"seal\n{row['seal']}")
    if row["before"]:
        print_measures(proposal.planner, row["before"], row["after"], row["bounds"])
        _print_actions(proposal, actions)


def _executed(running: Mapping[str, Any]) -> str:
    counts = f"{running['applied']} applied, {running['skipped']} skipped"
    return f"{running['done']} of {running['of']} ({counts}), {running['direction']}"


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


def _print_actions(proposal: Proposal, most: int) -> None:
    plan = list(proposal.plan[:most])
    names = names_of(proposal.cluster, plan)
    columns = ACTION_COLUMNS | {"bytes": "number"}
    rows = [[*action_cells(action_text(planned, names)), planned.bytes] for planned in plan]
    print_table(columns, rows, "nothing changes")
    if len(proposal.actions) > most:
        print_sentence(f"and {len(proposal.actions) - most:,} more (--actions, --json)")
