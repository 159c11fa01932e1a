"""weir proposals."""

from argparse import Namespace
from typing import Any, Final

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import path_of
from controlplane.cli.output import print_answer, print_list, print_rows
from controlplane.cli.proposal_output import path_of_proposal, print_proposal, proposal_values

_COLUMNS: Final = {
    "id": ("id", "number"), "planner": ("planner", "text"), "algorithm": ("algorithm", "text"),
    "state": ("state", "text"), "actions": ("actions", "number"),
    "asked by": ("requested_by", "text"), "at (UTC)": ("requested_at", "moment"),
}  # fmt: skip
_QUEUE_COLUMNS: Final = {
    "id": ("id", "number"), "position": ("position", "number"), "planner": ("planner", "name"),
    "algorithm": ("algorithm", "name"), "asked by": ("requested_by", "name"),
    "starts within (s)": ("starts_in_s", "number"), "takes at most (s)": ("estimated_s", "number"),
}  # fmt: skip
_LISTED: Final = ("id", "planner", "algorithm", "state", "requested_by", "requested_at")


def list_proposals(given: Namespace) -> None:
    """Print one page of a cluster's proposals."""
    path = path_of("/clusters/{cluster}/proposals", vars(given))
    body = api_of(given).get(
        path, page=given.page, per_page=given.per_page, state=given.state, filter=given.filter
    )
    rows = [
        {name: row[name] for name in _LISTED}
        | {"actions": row["action_count"], "seal": row["seal"] or None}
        for row in body["proposals"]
    ]
    print_list(given, body, "proposals", rows, _COLUMNS)


def list_queue(given: Namespace) -> None:
    """Print the cluster's proposals that are computed or wait, in the order of all clusters."""
    rows = api_of(given).get(path_of("/clusters/{cluster}/queue", vars(given)))
    print_rows(given, rows, _QUEUE_COLUMNS, "nothing waits")


def show_proposal(given: Namespace) -> None:
    """Print one proposal."""
    api = api_of(given)
    cluster, path = path_of_proposal(api, given.id)
    print_proposal(given, api, proposal_values(api, cluster, api.get(path)), given.actions)


def apply_verb(given: Namespace) -> None:
    """Apply a verb to a proposal."""
    api = api_of(given)
    cluster, path = path_of_proposal(api, given.id)
    names = ("reason", "seal", "applicable")
    values: dict[str, Any] = {
        name: value for name in names if (value := getattr(given, name, None)) not in (None, "")
    }
    body = api.post(f"{path}/{given.verb}", **values)
    row = proposal_values(api, cluster, body) if given.json else {}
    print_answer(given, row, f"proposal {body['id']} is {body['state']}")
