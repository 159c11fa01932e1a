"""weir queries."""

import json
from argparse import Namespace
from typing import Any, Final

from controlplane.catalog import query_retention
from controlplane.catalog.queries import (
    STATES,
    QueryFilters,
    QueryRow,
    queries_listing,
    query_by_name,
    row_of,
)
from controlplane.cli.actors import viewed
from controlplane.cli.codes import Code, Refused
from controlplane.cli.commands.documents import text_of
from controlplane.cli.output import print_answer, print_facts, print_json, print_page, values_of
from controlplane.cli.query_options import query_of
from controlplane.cluster_spec.text import parse_queries
from controlplane.groupings import PARAMETERS, parameters_text
from controlplane.query_spec import QuerySpec, spec_of, submitted_values
from controlplane.topology import queries

_COLUMNS: Final = {
    "query": ("name", "name"), "state": ("state", "text"), "node": ("node", "number"),
    "streams": ("streams", "names"), "window s": ("window_s", "number"),
    "tasks": ("tasks", "number"),
}  # fmt: skip


def list_queries(given: Namespace) -> None:
    """Print one page of a cluster's queries."""
    _, cluster = viewed(given)
    if given.state not in ("live", "all", *STATES):
        known = ", ".join(("live", "all", *STATES))
        raise Refused(Code.WRONG, f"--state {given.state}: must be one of {known}")
    state = "" if given.state == "all" else given.state
    filters = QueryFilters.of(vars(given) | {"q": given.search, "state": state})
    page = queries_listing(cluster, filters).page
    print_page(given, page, "queries", [_row(row) for row in page.rows], _COLUMNS)


def show_query(given: Namespace) -> None:
    """Print one query."""
    _, cluster = viewed(given)
    row = _row(row_of(query_by_name(cluster, given.name)))
    if given.json:
        print_json(row)
        return
    facts = {"streams": ", ".join(row["streams"]), "task_ranges": row["task_ranges"] or None}
    facts[PARAMETERS] = parameters_text(row[PARAMETERS]) or None
    fault = json.dumps(row["fault"]) if row["fault"] else None
    print_facts(row | facts | {"fault": fault})


def set_retention(given: Namespace) -> None:
    """Change the retention of a query's windows."""
    actor, cluster = viewed(given)
    query = query_retention.set_retention(
        actor, query_by_name(cluster, given.name), given.seconds, given.windows, given.reason
    )
    print_answer(given, values_of(query, "name retention_s retention_windows"))


def submit_queries(given: Namespace) -> None:
    """Submit one query by its options, or those of a file."""
    actor, cluster = viewed(given)
    saved = queries.submit_many(actor, cluster, _specs(given))
    names = [query.name for query in saved]
    subject = names[0] if len(names) == 1 else f"{len(names):,} queries"
    values = {"count": len(names), "names": names}
    print_answer(given, values, f"{subject} submitted, to be placed")


def end_queries(given: Namespace) -> None:
    """End live queries."""
    actor, cluster = viewed(given)
    count = queries.end(actor, cluster, given.names, given.reason)
    text = f"{count} {'query ends' if count == 1 else 'queries end'}"
    print_answer(given, {"count": count}, text)


def _specs(given: Namespace) -> list[QuerySpec]:
    if (given.input is None) == (given.name is None):
        message = "name one query, or give --input FILE"
        raise Refused(Code.WRONG, message, advice="weir queries submit --help")
    if given.input is not None:
        return [spec_of(part) for part in parse_queries(text_of(given.input))]
    return [query_of(given)]


def _row(row: QueryRow) -> dict[str, Any]:
    query = row.query
    return {
        **values_of(query, "name state"),
        "detail": query.detail or None,
        "fault": query.fault or None,
        "node": None if row.node is None else row.node.index,
        "streams": list(row.streams),
        **values_of(query, "window_s text"),
        **submitted_values(query),
        "task_ranges": [list(part) for part in row.task_ranges],
        "key_grouping": query.key_grouping or None,
        "aggregators": query.aggregators or None,
        **values_of(query, "submitted_by submitted_at ended_at"),
    }
