"""Printed proposals, as the API has them."""

from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from controlplane.cli.client.api import Api, path_of
from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.output import print_facts, print_json, print_sentence, print_table

_LIMIT: Final = 1000
_EXECUTION: Final = (
    "direction", "done", "undone", "applied", "skipped", "cap", "cap_reason", "started_at",
    "finished_at",
)  # fmt: skip
_OWN: Final = ("planner", "algorithm", "parameters", "state", "progress", "requested_by",
               "requested_at")  # fmt: skip
_PLANNED: Final = ("before", "after", "bounds", "predicted", "rollback_cost")


def path_of_proposal(api: Api, number: int) -> tuple[str, str]:
    """Return the cluster of a proposal, and its address. Raises `CliError` if there is none."""
    for cluster in api.get("/clusters", limit=_LIMIT)["clusters"]:
        path = f"{path_of('/clusters/{slug}', cluster)}/proposals/{number}"
        if api.send("GET", path).status == HTTPStatus.OK:
            return cluster["slug"], path
    advice = "weir proposals list CLUSTER"
    raise CliError(ExitCode.NOT_FOUND, f"There is no proposal {number}", advice=advice)


def proposal_values(api: Api, cluster: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a proposal as JSON values, with all actions and what the caller may do with it."""
    path = f"{path_of('/clusters/{slug}', {'slug': cluster})}/proposals/{body['id']}"
    actions = _actions(api, path) if body["action_count"] else []
    return {
        "id": body["id"],
        "cluster": cluster,
        **{name: body[name] for name in _OWN},
        "approved_by": body["approved_by"] or None,
        "seal": body["seal"] or None,
        **{name: body[name] for name in _PLANNED},
        "imbalance_after": [action["imbalance"] for action in actions],
        "actions": actions,
        "review": body["review"] or None,
        "drift": body["drift"] or None,
        "drifting_since": body["drifting_since"],
        "error": body["error"] or None,
        "execution": execution_values(api, path),
        "verbs": [verb["verb"] for verb in body["allowed"]],
    }


def execution_values(api: Api, path: str) -> dict[str, Any] | None:
    """Return how far the execution of a proposal is, None before it starts."""
    answer = api.send("GET", f"{path}/execution?limit=1")
    if answer.status != HTTPStatus.OK:
        return None
    body = answer.value
    return {
        **{name: body[name] for name in _EXECUTION},
        "of": body["total_actions"], "waits": body["waits"] or None, "step": body["step"],
    }  # fmt: skip


def _actions(api: Api, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api.get(f"{path}/actions", cursor=cursor, limit=_LIMIT)
        rows, cursor = rows + page["actions"], page["next"]
    return rows


def print_proposal(given: Namespace, api: Api, row: Mapping[str, Any], actions: int) -> None:
    """Print a proposal with its first actions, or as JSON with all."""
    if given.json:
        print_json(row)
        return
    _print_facts(row)
    if row["seal"]:
        # On a line of its own, whole: it is copied.
        print_sentence(f"seal\n{row['seal']}")
    if row["before"]:
        _print_measures(api, row)
        _print_actions(row["actions"], actions)


def _print_facts(row: Mapping[str, Any]) -> None:
    running, requested_at = row["execution"], datetime.fromisoformat(row["requested_at"])
    print_facts(
        {
            "proposal": f"{row['id']}, {row['planner']} by {row['algorithm']}",
            "cluster": row["cluster"],
            "state": row["state"],
            "asked by": f"{row['requested_by']}, {requested_at:%Y-%m-%d %H:%M} UTC",
            "approved by": row["approved_by"],
            "why": row["error"],
            "actions": row["predicted"].get("actions"),
            "bytes": row["predicted"].get("bytes"),
            "executed": running and _executed(running),
            "waits": running and running["waits"],
            "may be done": ", ".join(row["verbs"]) or None,
        }
    )


def _executed(running: Mapping[str, Any]) -> str:
    counts = f"{running['applied']} applied, {running['skipped']} skipped"
    return f"{running['done']} of {running['of']} ({counts}), {running['direction']}"


def _print_measures(api: Api, row: Mapping[str, Any]) -> None:
    planners = api.get(f"{path_of('/clusters/{cluster}', row)}/planners")
    measures = next(item["measures"] for item in planners if item["name"] == row["planner"])
    titles = {item["name"]: item["title"] for item in measures if not item["per_node"]}
    print_measures(titles, *(row[part] for part in ("before", "after", "bounds")))


def print_measures(titles: Mapping[str, str], *values: Mapping[str, Any]) -> None:
    """Print measures before and after a plan, and their bounds; `titles`: of measures by name."""
    columns = {"measure": "text", "before": "number", "after": "number", "bound": "number"}
    print_table(columns, [[title, *(part.get(name) for part in values)]
                          for name, title in titles.items()])  # fmt: skip


def _print_actions(actions: list[dict[str, Any]], most: int) -> None:
    columns = {"changes": "text", "of": "name", "from": "text", "to": "text", "bytes": "number"}
    names = ("title", "object", "before", "after", "bytes")
    rows = [[action[name] if action[name] != "" else None for name in names] for action in actions]
    print_table(columns, rows[:most], "nothing changes")
    if len(rows) > most:
        print_sentence(f"and {len(rows) - most:,} more (--actions, --json)")
