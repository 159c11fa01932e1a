"""weir queries groupings and key-grouping."""

from argparse import Namespace
from typing import Any, Final

from algorithms.partitioning.catalog import GROUPINGS, fields_of
from algorithms.vocabulary import ParameterField
from controlplane.catalog.queries import query_by_name
from controlplane.cli.actors import viewed
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import print_answer, print_rows, values_of
from controlplane.cli.query_options import named_texts, parameter_values
from controlplane.groupings import PARAMETERS, label_of, route_text
from controlplane.topology import key_groupings

_COLUMNS: Final = {"grouping": ("name", "text"), "what it does": ("about", "name")}
_PARAMETER_COLUMNS: Final = {
    "parameter": ("name", "text"), "default": ("default", "text"), "unit": ("unit", "text"),
    "what it is": ("help", "name"),
}  # fmt: skip


def list_key_groupings(given: Namespace) -> None:
    """Print all key groupings, or the parameters of one; as JSON, both."""
    if given.grouping and given.grouping not in GROUPINGS:
        message = f"there is no key grouping {given.grouping}"
        raise Refused(Code.WRONG, message, advice="weir queries groupings")
    names = [given.grouping] if given.grouping else list(GROUPINGS)
    if given.grouping and not given.json:
        rows = [_parameter(field) for field in fields_of(given.grouping)]
        print_rows(given, rows, _PARAMETER_COLUMNS, "no parameter")
        return
    print_rows(given, [_grouping(name, given.json) for name in names], _COLUMNS)


def set_key_grouping(given: Namespace) -> None:
    """Change the key grouping of a running query."""
    actor, cluster = viewed(given)
    advice = "weir queries key-grouping --help"
    texts = named_texts("--param", given.param, "NAME=VALUE", advice)
    query = key_groupings.set_key_grouping(
        actor,
        query_by_name(cluster, given.name),
        given.grouping,
        parameter_values(given.grouping, texts),
        given.reason,
    )
    label = label_of(route_text(query.key_grouping, query.key_grouping_parameters))
    text = f"the key grouping of {query.name} is {label}"
    print_answer(given, values_of(query, f"name key_grouping {PARAMETERS}"), text)


def _grouping(name: str, with_parameters: bool) -> dict[str, Any]:
    row = values_of(GROUPINGS[name], "name title about by_key")
    if with_parameters:
        row["parameters"] = [_parameter(field) for field in fields_of(name)]
    return row


def _parameter(field: ParameterField) -> dict[str, Any]:
    names = "name default unit help minimum maximum choices optional"
    return values_of(field, names) | {"type": field.type.__name__}
