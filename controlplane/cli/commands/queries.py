"""weir queries."""

import json
from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

import yaml

from controlplane.cli.backends import api_of, is_remote
from controlplane.cli.backends.interface import path_of
from controlplane.cli.codes import Code, Refused
from controlplane.cli.input_files import text_of
from controlplane.cli.output import print_answer, print_facts, print_json, print_list
from controlplane.cli.query_options import query_of
from controlplane.groupings import PARAMETERS, parameters_text
from controlplane.query_spec import DECLARED, QuerySpec, spec_of

_COLUMNS: Final = {
    "query": ("name", "name"), "state": ("state", "text"), "node": ("node", "number"),
    "streams": ("streams", "names"), "window s": ("window_s", "number"),
    "tasks": ("tasks", "number"), "processor % est.": ("processor_percent", "number"),
}  # fmt: skip
_QUERY: Final = "/clusters/{cluster}/queries/{name}"


def list_queries(given: Namespace) -> None:
    """Print one page of a cluster's queries."""
    state = "" if given.state == "all" else given.state
    body = api_of(given).get(
        f"{path_of('/clusters/{cluster}', vars(given))}/queries", page=given.page,
        per_page=given.per_page, q=given.search, state=state, node=given.node,
        stream=given.stream, filter=given.filter,
    )  # fmt: skip
    print_list(given, body, "queries", [_row(row) for row in body["queries"]], _COLUMNS)


def show_query(given: Namespace) -> None:
    """Print one query."""
    row = _row(api_of(given).get(path_of(_QUERY, vars(given))))
    if given.json:
        print_json(row)
        return
    facts = {"streams": ", ".join(row["streams"]), "task_ranges": row["task_ranges"] or None}
    facts[PARAMETERS] = parameters_text(row[PARAMETERS]) or None
    fault = json.dumps(row["fault"]) if row["fault"] else None
    print_facts(row | facts | {"fault": fault})


def set_retention(given: Namespace) -> None:
    """Change the retention of a query's windows."""
    path = path_of(f"{_QUERY}/retention", vars(given))
    query = api_of(given).post(
        path, retention_s=given.seconds, retention_windows=given.windows, reason=given.reason
    )
    names = ("name", "retention_s", "retention_windows")
    print_answer(given, {name: query[name] for name in names})


def submit_queries(given: Namespace) -> None:
    """Submit one query by its options, or those of a file."""
    api = api_of(given)
    path = f"{path_of('/clusters/{cluster}', vars(given))}/queries/bulk"
    values = api.post(path, queries=_submitted(given))
    names = values["names"]
    subject = names[0] if len(names) == 1 else f"{len(names):,} queries"
    print_answer(given, values, f"{subject} submitted, to be placed")


def end_queries(given: Namespace) -> None:
    """End live queries."""
    path = f"{path_of('/clusters/{cluster}', vars(given))}/queries/end"
    count = api_of(given).post(path, names=given.names, reason=given.reason)["count"]
    text = f"{count} {'query ends' if count == 1 else 'queries end'}"
    print_answer(given, {"count": count}, text)


def _submitted(given: Namespace) -> list[Any]:
    if (given.input is None) == (given.name is None):
        message = "name one query, or give --input FILE"
        raise Refused(Code.WRONG, message, advice="weir queries submit --help")
    if given.input is None:
        return [_body(query_of(given))]
    text = text_of(given.input)
    return _listed(given, text) if is_remote(given) else _checked(text)


def _checked(text: str) -> list[Any]:
    """Return the queries of a file; faults have their place in it. Raises `BadDescription`."""
    from controlplane.cluster_spec.text import parse_queries  # noqa: PLC0415

    return [_body(spec_of(part)) for part in parse_queries(text)]


def _listed(given: Namespace, text: str) -> list[Any]:
    """Return the queries of a file as they are: the other Weir checks them. Raises `Refused`."""
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as wrong:
        raise Refused(Code.WRONG, f"{given.input} is no YAML", [str(wrong)]) from None
    if not isinstance(value, Mapping) or not isinstance(value.get("queries"), list):
        raise Refused(Code.WRONG, f"{given.input} has no list `queries`")
    return list(value["queries"])


def _body(spec: QuerySpec) -> Any:
    """Return a query as a body of the API."""
    text = {item.name: getattr(spec.text, item.name) for item in DECLARED.text
            if item.name != "right"}  # fmt: skip
    values = {item.name: getattr(spec, item.name) for item in DECLARED.fields}
    values["text"] = text | {"right": list(spec.right)}
    return values


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    own = ("name", "state", "detail", "fault", "node", "streams", "window_s", "text")
    submitted = tuple(DECLARED.columns)
    rest = ("task_ranges", "key_grouping", "aggregators", "late_records", "submitted_by",
            "submitted_at", "ended_at")  # fmt: skip
    values = {name: row[name] for name in (*own, *submitted, *rest)}
    empty = {name: None for name in ("detail", "fault", "key_grouping", "aggregators")
             if not values[name]}  # fmt: skip
    text = row["text"]
    written = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    # An estimate, in % of one processor.
    processor = None if row["measured_at"] is None else round(row["processor_percent"], 1)
    return values | empty | {"processor_percent": processor, "text": written}
