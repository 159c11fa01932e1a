"""Write the tables of docs/queries.md from the declaration of a query and the language.

`python -m docs.query_tables`.
"""

from collections.abc import Sequence
from pathlib import Path

from algorithms.partitioning.catalog import GROUPINGS, GroupingInfo
from controlplane.catalog.language import LanguageEntry, aggregates, functions, operators
from controlplane.queries.key_groupings import value_text
from controlplane.queries.spec import DECLARED, QueryField

PAGE = Path(__file__).with_name("queries.md")
MARK = "<!-- tables -->\n"


def tables() -> str:
    """Return every field, key grouping, aggregate, function and operator as Markdown."""
    parts = (("Aggregates", aggregates()), ("Functions", functions()), ("Operators", operators()))
    return "\n".join([_fields(), _groupings(), *(_table(title, rows) for title, rows in parts)])


def _fields() -> str:
    rows = [
        f"| `{item.path}` | {_default(item)} | {_bounds(item)} | {item.facts['description']} |"
        for item in (*DECLARED.fields, *DECLARED.text)
        if item.path != "text"
    ]
    head = ["### Fields", "", "| field | if left out | bounds | meaning |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _groupings() -> str:
    rows = [
        f"| `{info.name}` | {info.title}. {info.about} | {_parameters(info)} |"
        for info in GROUPINGS.values()
    ]
    head = ["### Key groupings", "", "| name | meaning | parameters |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _parameters(info: GroupingInfo) -> str:
    fields = info.parameters.fields()
    return ", ".join(f"`{field.name}` ({value_text(field.default)})" for field in fields)


def _default(item: QueryField) -> str:
    if item.is_required:
        return "must be given"
    if isinstance(item.default, int | float):
        return f"{item.default:,g}" if isinstance(item.default, float) else f"{item.default:,}"
    return "null" if item.default is None else "empty"


def _bounds(item: QueryField) -> str:
    """Return the bounds of a number, or of the length of a text or a list."""
    signs = {"gt": ">", "ge": "≥", "le": "≤", "min_length": "≥", "max_length": "≤"}
    bounds = ", ".join(
        f"{sign} {item.facts[name]:,}" for name, sign in signs.items() if name in item.facts
    )
    return " ".join(
        filter(
            None,
            [
                bounds,
                item.facts.get("unit") or ("characters" if item.kind is str and bounds else ""),
            ],
        )
    )


def _table(title: str, entries: Sequence[LanguageEntry]) -> str:
    rows = [f"| `{entry.written}` | {entry.gives} | {entry.about} |" for entry in entries]
    return "\n".join(
        [f"### {title}", "", "| written | gives | meaning |", "|---|---|---|", *rows, ""]
    )


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + tables(), encoding="utf-8")
