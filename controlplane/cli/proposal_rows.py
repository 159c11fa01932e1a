"""Printed proposals."""

from typing import Any

from controlplane.access.roles import Actor
from controlplane.cli.output import print_facts, print_sentence, print_table
from controlplane.models import Execution, Proposal, Step
from controlplane.proposals import verbs


def proposal_row(actor: Actor, proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as JSON values, with its moves and the actor's verbs."""
    return {
        "id": proposal.pk,
        "cluster": proposal.cluster.slug,
        "planner": proposal.planner,
        "algorithm": proposal.algorithm,
        "parameters": proposal.parameters,
        "state": proposal.state,
        "progress": proposal.progress,
        "requested_by": proposal.requested_by,
        "requested_at": proposal.requested_at,
        "approved_by": proposal.approved_by or None,
        "seal": proposal.seal or None,
        "before": proposal.before,
        "after": proposal.after,
        "lower_bound": proposal.lower_bound,
        "predicted": proposal.predicted,
        "undo": proposal.undo,
        "path": proposal.path,
        "moves": proposal.moves,
        "drift": proposal.drift or None,
        "error": proposal.error or None,
        "execution": execution_row(proposal),
        "verbs": [verb.path for verb in verbs.offered(actor, proposal)],
    }


def execution_row(proposal: Proposal) -> dict[str, Any] | None:
    """Return the progress of the execution, None before it."""
    execution = Execution.objects.filter(proposal=proposal).first()
    if execution is None:
        return None
    step = Step.objects.filter(execution=execution).order_by("-number").first()
    return {
        "direction": execution.direction,
        "done": execution.done,
        "undone": execution.undone,
        "of": len(proposal.moves),
        "cap": execution.cap,
        "cap_reason": execution.cap_reason,
        "waits": execution.waits or None,
        "step": None if step is None else step.number,
        "started_at": execution.started_at,
        "finished_at": execution.finished_at,
    }


def print_proposal(actor: Actor, proposal: Proposal, moves: int) -> None:
    """Print a proposal with its first moves."""
    row = proposal_row(actor, proposal)
    going = row["execution"]
    predicted = row["predicted"]
    print_facts(
        {
            "proposal": f"{proposal.pk}, {proposal.planner} by {proposal.algorithm}",
            "cluster": row["cluster"],
            "state": row["state"],
            "asked by": f"{row['requested_by']}, {row['requested_at']:%Y-%m-%d %H:%M} UTC",
            "approved by": row["approved_by"],
            "why": row["error"],
            "moves": predicted.get("moves"),
            "bytes": predicted.get("bytes"),
            "lower bound": row["lower_bound"],
            "carried out": going and f"{going['done']} of {going['of']}, {going['direction']}",
            "waits": going and going["waits"],
            "may be done": ", ".join(row["verbs"]) or None,
        }
    )
    if row["seal"]:
        # On a line of its own, whole: it is copied.
        print_sentence(f"seal\n{row['seal']}")
    if row["before"]:
        names = ("replication_factor", "traffic", "imbalance", "max_load")
        rows = [
            [name.replace("_", " "), row["before"].get(name), row["after"].get(name)]
            for name in names
        ]
        print_table({"measure": "text", "before": "number", "after": "number"}, rows)
        _print_moves(row["moves"], moves)


def _print_moves(rows: list[dict[str, Any]], most: int) -> None:
    columns = {"query": "name", "task": "number", "from": "number", "to": "number",
               "bytes": "number"}  # fmt: skip
    table = [[m["name"], m.get("first"), m["from"], m["to"], m["bytes"]] for m in rows[:most]]
    print_table(columns, table, "nothing moves")
    if len(rows) > most:
        print_sentence(f"and {len(rows) - most:,} more (--moves, --json)")
