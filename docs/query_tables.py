"""Write the tables of docs/queries.md from the language: `python -m docs.query_tables`."""

from collections.abc import Sequence
from pathlib import Path

from controlplane.catalog.language import Entry, aggregates, functions, operators

PAGE = Path(__file__).with_name("queries.md")
MARK = "<!-- tables -->\n"


def tables() -> str:
    """Return every aggregate, function and operator as Markdown."""
    parts = (("Aggregates", aggregates()), ("Functions", functions()), ("Operators", operators()))
    return "\n".join(_table(title, entries) for title, entries in parts)


def _table(title: str, entries: Sequence[Entry]) -> str:
    rows = [f"| `{entry.written}` | {entry.gives} | {entry.about} |" for entry in entries]
    return "\n".join(
        [f"### {title}", "", "| written | gives | meaning |", "|---|---|---|", *rows, ""]
    )


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + tables(), encoding="utf-8")
