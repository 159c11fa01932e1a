"""Plans become lists of actions; steps keep what reverts them; the ledger keeps what was approved."""

import hashlib
import json
from typing import Any

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

STALE_REASON = "Weir was upgraded: request the plan again"


def _move(query: int, first: int, stop: int, node: int) -> dict[str, Any]:
    return {"op": "move_tasks", "query": query, "moves": [[node, first, stop]]}


def _row(move: dict[str, Any]) -> dict[str, Any]:
    """Return a move of an earlier release as the row of a planned action."""
    tasks = move["query"], move.get("first", 0), move.get("past", 1)
    return {
        "action": _move(*tasks, move["to"]),
        "before": [_move(*tasks, move["from"])],
        "bytes": move.get("bytes", 0),
    }


def _seal(rows: list[dict[str, Any]], digest: str) -> str:
    value = {"actions": [row["action"] for row in rows], "snapshot": digest}
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _cost(cost: dict[str, Any]) -> dict[str, Any]:
    return {**cost, "actions": cost["moves"]} if "moves" in cost else cost


def convert_proposals(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Rewrite moves as actions; a proposal that waits for approval becomes stale."""
    proposals = apps.get_model("controlplane", "Proposal").objects
    # One by one: plans are large, and a row that was converted must not be read again.
    for pk in list(proposals.order_by("pk").values_list("pk", flat=True)):
        row = proposals.get(pk=pk)
        row.actions = [_row(move) for move in row.actions]
        if row.seal and row.snapshot_row_id:
            row.seal = _seal(row.actions, row.snapshot_row_id)
        row.predicted, row.rollback_cost = _cost(row.predicted), _cost(row.rollback_cost)
        row.bounds = {} if row.lower_bound is None else {"replication_factor": row.lower_bound}
        if "bytes_bound" in row.predicted:
            row.bounds["bytes"] = row.predicted.pop("bytes_bound")
        if row.state == "ready":
            row.state, row.error = "stale", STALE_REASON
        row.save()


def convert_steps(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give each step the codes of skipped actions, and what reverts the others."""
    executions = apps.get_model("controlplane", "Execution").objects
    for pk in list(executions.order_by("pk").values_list("pk", flat=True)):
        execution = executions.select_related("proposal").get(pk=pk)
        execution.rollback_cost = _cost(execution.rollback_cost)
        execution.save()
        actions = execution.proposal.actions
        for step in execution.steps.all():
            skipped = set(step.skipped)
            step.skipped = [[place, "changed"] for place in step.skipped]
            step.applied = step.stop - step.first - len(skipped)
            if step.direction == "forward":
                step.inverses = [
                    [place, actions[place]["before"]]
                    for place in range(step.first, step.stop)
                    if place not in skipped
                ]
            step.save()


def convert_ledger(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Take what was approved from the proposals; earlier entries kept what was applied only."""
    entries = apps.get_model("controlplane", "LedgerEntry").objects
    for pk in list(entries.order_by("pk").values_list("pk", flat=True)):
        entry = entries.select_related("proposal").get(pk=pk)
        after, predicted = entry.proposal.after, entry.proposal.predicted
        known = {**entry.expected, **after, **predicted}
        entry.approved = {
            name: known[name] for name in entry.expected if known.get(name) is not None
        }
        entry.skipped = max(0, len(entry.proposal.actions) - entry.applied)
        entry.save()


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0026_policy_settings")]

    operations = [
        migrations.AlterField("proposal", "planner", models.CharField(max_length=30)),
        migrations.RenameField("proposal", "moves", "actions"),
        migrations.RenameField("proposal", "path", "imbalance_after"),
        migrations.RenameField("proposal", "undo", "rollback_cost"),
        migrations.RenameField("execution", "undo", "rollback_cost"),
        migrations.RenameField("step", "past", "stop"),
        migrations.RenameField("ledgerentry", "predicted", "expected"),
        migrations.RenameField("ledgerentry", "moves", "applied"),
        migrations.AddField("proposal", "bounds", models.JSONField(blank=True, default=dict)),
        migrations.AddField("proposal", "review", models.JSONField(blank=True, default=dict)),
        migrations.AddField("step", "applied", models.PositiveIntegerField(default=0)),
        migrations.AddField("step", "inverses", models.JSONField(blank=True, default=list)),
        migrations.AddField("step", "effective_at", models.BigIntegerField(blank=True, null=True)),
        migrations.AddField("ledgerentry", "approved", models.JSONField(default=dict)),
        migrations.AddField("ledgerentry", "skipped", models.PositiveIntegerField(default=0)),
        migrations.RunPython(convert_proposals, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(convert_steps, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(convert_ledger, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField("proposal", "lower_bound"),
    ]
