"""Commands about saved views of lists, and bulk actions on queries."""

from typing import Final

from controlplane.cli.operations.declaration import Operation, Option

_VALUES: Final = (
    Option("filter", 'as "state:live rate>100"', metavar="TEXT"),
    Option("order", "a column of the list, - before it for the largest first", metavar="COLUMN"),
    Option("default", "open the list with it", "is_default", flag=True),
)

_BULK: Final = (
    Operation(
        "queries end-matching", "POST", "/clusters/{cluster}/queries/end-matching",
        "end the queries that a filter selects",
        body=(Option("filter", 'as "state:live rate<1"', required=True, metavar="TEXT"),
              Option("confirmed", "end no more than so many", type=int, required=True,
                     metavar="N"),
              Option("reason", "kept in the audit log")),
        sentence="{answer[done]} of {answer[total]} queries end (action {answer[id]})",
    ),
    Operation(
        "queries restore", "POST", "/clusters/{cluster}/queries/restore",
        "submit queries again that ended within the last hour, without their former state",
        body=(Option("name", "of an ended query; may repeat", "names", many=True, required=True,
                     metavar="NAME"),),
        sentence="{answer[done]} of {answer[total]} queries are submitted again",
    ),
    Operation("queries action", "GET", "/clusters/{cluster}/bulk-actions/{id}",
              "the progress of a bulk action"),
    Operation("queries restore-action", "POST", "/clusters/{cluster}/bulk-actions/{id}/restore",
              "restore the queries that a bulk action has ended",
              sentence="{answer[done]} of {answer[total]} queries are submitted again"),
    Operation("queries cancel-action", "POST", "/clusters/{cluster}/bulk-actions/{id}/cancel",
              "cancel a running bulk action", sentence="{answer[done]} of {answer[total]} ended"),
)  # fmt: skip
OPERATIONS: Final = (
    *_BULK,
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
