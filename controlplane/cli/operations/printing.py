"""Output of any response: facts of an object, and a table for each of its lists.

A table has the columns that the schema declares as `x-columns`, else the first ones that fit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controlplane.cli.operations.schemas import Schema, columns_of, properties_of
from controlplane.cli.output import WIDTH, print_facts, print_sentence, print_table

# Values of a page of a list besides its rows.
_PAGE: Final = ("total", "next")
# Room of a text in a table whose columns are chosen by what fits.
_TEXT: Final = 14
# A text that is not broken over lines, such as a state.
_WORD: Final = 9
_LONG_LIST: Final = 5


def print_value(value: Any, schema: Schema, schemas: Schema, *, is_change: bool = False) -> None:
    """Print a response for people; of an object that was changed, its columns alone."""
    if isinstance(value, list):
        _print_rows(value, schema, schemas)
    elif isinstance(value, Mapping):
        columns = columns_of(schema, schemas) if is_change else []
        _print_object(
            {name: value[name] for name in columns or value if name in value}, schema, schemas
        )
    else:
        print_sentence("done" if is_change else "nothing")


def _print_object(value: Mapping[str, Any], schema: Schema, schemas: Schema) -> None:
    lists = {name: rows for name, rows in value.items() if _are_rows(rows)}
    is_page = "next" in value
    facts = {
        name.replace("_", " "): _short(part)
        for name, part in value.items()
        if name not in lists and part not in ("", None, [], {}) and not (is_page and name in _PAGE)
    }
    if facts:
        print_facts(facts)
    properties = properties_of(schema, schemas)
    for name, rows in lists.items():
        if len(lists) + bool(facts) > 1:
            print_sentence(name.replace("_", " "))
        _print_rows(rows, properties.get(name, {}), schemas)
    if is_page:
        if not lists:
            print_sentence("nothing")
        _print_pages(value)


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict | list)


def _short(value: Any) -> Any:
    """Return a list of single values as a text with its first ones."""
    if not isinstance(value, list):
        return value
    more = len(value) - _LONG_LIST
    shown = ", ".join(map(str, value[:_LONG_LIST]))
    return f"{shown} and {more:,} more" if more > 0 else shown


def _print_rows(rows: Sequence[Any], schema: Schema, schemas: Schema) -> None:
    if not rows:
        print_sentence("nothing")
        return
    if not isinstance(rows[0], Mapping):
        for row in rows:
            print_sentence(" ".join(map(str, row)) if isinstance(row, list) else str(row))
        return
    names = columns_of(schema, schemas) or _fitting(rows)
    properties = properties_of(schema, schemas)
    columns = {name.replace("_", " "): _kind(properties.get(name, {}), rows, name)
               for name in names}  # fmt: skip
    print_table(columns, [[row.get(name) for name in names] for row in rows])


def _kind(schema: Schema, rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return what a column holds, as of `print_table`."""
    if schema.get("format") == "date-time":
        return "moment"
    values = [row.get(name) for row in rows if row.get(name) is not None]
    for kind, cells in ((list, "names"), (dict, "pairs"), (bool, "text")):
        if values and all(isinstance(value, kind) for value in values):
            return cells
    if values and all(isinstance(value, int | float) for value in values):
        return "number"
    if all(isinstance(value, str) and len(value) <= _WORD for value in values):
        return "text"
    return "name"


def _fitting(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the first names of values, or of lists of them, that fit beside each other."""
    names: list[str] = []
    room = WIDTH
    for name, value in rows[0].items():
        if isinstance(value, dict) or _are_rows(value):
            continue
        cells = [len(str(row.get(name))) for row in rows]
        room -= max(len(name), min(_TEXT, max(cells))) + 3
        if room < 0:
            break
        names.append(name)
    return names


def _print_pages(answer: Mapping[str, Any]) -> None:
    if answer.get("next"):
        total = f" of {answer['total']:,}" if answer.get("total") else ""
        print_sentence(f"more{total}: --cursor {answer['next']}")
