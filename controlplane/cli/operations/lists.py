"""Commands about saved views of lists."""

from typing import Final

from controlplane.cli.operations.declaration import Operation, Option

_VALUES: Final = (
    Option("filter", 'as "state:live rate>100"', metavar="TEXT"),
    Option("order", "a column of the list, - before it for the largest first", metavar="COLUMN"),
    Option("default", "open the list with it", "is_default", flag=True),
)

OPERATIONS: Final = (
    Operation(
        "views list", "GET", "/views", "your saved views of lists",
        query=(Option("list", "queries, streams, ...", metavar="LIST"),),
        rows="", columns={
            "id": ("id", "number"), "list": ("list", "name"), "name": ("name", "name"),
            "filter": ("filter", "text"), "order": ("order", "text"),
            "default": ("is_default", "text"),
        }, empty="no saved view",
    ),
    Operation(
        "views save", "POST", "/views", "save a filter and an order of a list under a name",
        body=(Option("list", "queries, streams, proposals, decisions or audit", required=True),
              Option("name", required=True), *_VALUES),
        sentence="view {answer[id]} is saved",
    ),
    Operation(
        "views change", "PATCH", "/views/{id}", "change a saved view",
        body=(Option("name"), *_VALUES,
              Option("no-default", "open the list without it", "is_default", flag=False)),
        sentence="view {answer[id]} is changed",
    ),
    Operation("views delete", "DELETE", "/views/{id}", "delete a saved view",
              sentence="view {id} is deleted"),
)  # fmt: skip
