"""weir queries submit."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import yaml

from controlplane.cli.client.api import cluster_path
from controlplane.cli.client.connection import api_of
from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.input_files import text_of
from controlplane.cli.output import print_answer
from controlplane.cli.query_options import query_of
from controlplane.queries.spec import DECLARED, QuerySpec


def submit_queries(given: Namespace) -> None:
    """Submit one query by its options, or those of a file."""
    values = api_of(given).post(f"{cluster_path(given)}/queries/bulk", queries=_submitted(given))
    names = values["names"]
    subject = names[0] if len(names) == 1 else f"{len(names):,} queries"
    print_answer(given, values, f"{subject} submitted, to be placed")


def _submitted(given: Namespace) -> list[Any]:
    if (given.input is None) == (given.name is None):
        message = "name one query, or give --input FILE"
        raise CliError(ExitCode.WRONG, message, advice="weir queries submit --help")
    return [_body(query_of(given))] if given.input is None else _listed(given)


def _listed(given: Namespace) -> list[Any]:
    """Return the queries of a file as they are: Weir checks them. Raises `CliError`."""
    try:
        value = yaml.safe_load(text_of(given.input))
    except (yaml.YAMLError, RecursionError) as wrong:
        raise CliError(ExitCode.WRONG, f"{given.input} is not YAML", [str(wrong)]) from None
    if not isinstance(value, Mapping) or not isinstance(value.get("queries"), list):
        raise CliError(ExitCode.WRONG, f"{given.input} has no list `queries`")
    return list(value["queries"])


def _body(spec: QuerySpec) -> Any:
    """Return a query as a body of the API."""
    text = {item.name: getattr(spec.text, item.name) for item in DECLARED.text
            if item.name != "right"}  # fmt: skip
    values = {item.name: getattr(spec, item.name) for item in DECLARED.fields}
    values["text"] = text | {"right": list(spec.right)}
    return values
