"""weir queries groupings and key-grouping."""

from argparse import Namespace
from typing import Final

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import path_of
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import print_answer, print_rows
from controlplane.cli.query_options import named_texts, parameter_values
from controlplane.groupings import PARAMETERS, label_of, route_text

_COLUMNS: Final = {"grouping": ("name", "text"), "what it does": ("about", "name")}
_PARAMETER_COLUMNS: Final = {
    "parameter": ("name", "text"), "default": ("default", "text"), "unit": ("unit", "text"),
    "what it is": ("about", "name"),
}  # fmt: skip


def list_key_groupings(given: Namespace) -> None:
    """Print all key groupings, or the parameters of one; as JSON, both."""
    groupings = {row["name"]: row for row in api_of(given).get("/key-groupings")}
    if given.grouping and given.grouping not in groupings:
        message = f"there is no key grouping {given.grouping}"
        raise Refused(Code.WRONG, message, advice="weir queries groupings")
    rows = [groupings[given.grouping]] if given.grouping else list(groupings.values())
    if given.grouping and not given.json:
        shown = [row | {"about": f"{row['title']}: {row['help']}"} for row in rows[0]["parameters"]]
        print_rows(given, shown, _PARAMETER_COLUMNS, "no parameter")
        return
    print_rows(given, rows, _COLUMNS)


def set_key_grouping(given: Namespace) -> None:
    """Change the key grouping of a running query."""
    advice = "weir queries key-grouping --help"
    texts = named_texts("--param", given.param, "NAME=VALUE", advice)
    parameters = parameter_values(given.grouping, texts)
    path = path_of("/clusters/{cluster}/queries/{name}/key-grouping", vars(given))
    body = {"key_grouping": given.grouping, PARAMETERS: parameters, "reason": given.reason}
    query = api_of(given).post(path, **body)
    label = label_of(route_text(query["key_grouping"], query[PARAMETERS]))
    values = {name: query[name] for name in ("name", "key_grouping", PARAMETERS)}
    print_answer(given, values, f"the key grouping of {query['name']} is {label}")
