"""Output: tables for people (outside of a terminal 80 columns without colour), and JSON."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from controlplane.pagination.pages import Page

WIDTH: Final = 80
Columns = Mapping[str, str]


def console(*, error: bool = False) -> Console:
    """Return the console; without a terminal it is 80 columns wide."""
    terminal = Console(stderr=error, highlight=False, soft_wrap=False)
    return terminal if terminal.is_terminal else Console(stderr=error, highlight=False, width=WIDTH)


def print_json(value: Any, *, line: bool = False) -> None:
    """Print JSON: over several lines, or as one line of many."""
    indent = None if line else 2
    text = json.dumps(
        value, cls=DjangoJSONEncoder, indent=indent, ensure_ascii=False, allow_nan=False
    )
    sys.stdout.write(f"{text}\n")
    if line:
        sys.stdout.flush()


def print_table(columns: Columns, rows: Sequence[Sequence[Any]], empty: str = "nothing") -> None:
    """Print rows under the columns; of these, by title, what they hold: text, name or number.

    A text is cut where the table would be too wide, a name is broken; a number never is.
    """
    if not rows:
        print_sentence(empty)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for title, kind in columns.items():
        table.add_column(
            title,
            justify="right" if kind == "number" else "left",
            no_wrap=kind != "name",
            overflow="fold" if kind == "name" else "ellipsis",
            min_width=len(title),
        )
    for row in rows:
        table.add_row(*(Text(format_value(value)) for value in row))
    _print(table)


def print_page_as_json(page: Page[Any], what: str, rows: Sequence[Any]) -> None:
    """Print one page of a list, its rows under the name of what they are."""
    print_json({"total": page.total, "page": page.number, "pages": page.pages, what: rows})


def print_page_number(page: Page[Any], what: str) -> None:
    """Print the number of the page if there are several pages."""
    if page.pages > 1:
        print_sentence(f"page {page.number} of {page.pages}, {page.total:,} {what} (--page)")


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one per line, without None."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value is not None:
            table.add_row(name, Text(format_value(value)))
    _print(table)


def _print(table: Table) -> None:
    """Print a table, into a file without trailing blanks."""
    terminal = console()
    if terminal.is_terminal:
        terminal.print(table)
        return
    with terminal.capture() as captured:
        terminal.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    sys.stdout.write("\n".join(line for line in lines if line) + "\n")


def print_sentence(text: str) -> None:
    """Print a sentence."""
    console().print(Text(text))


def format_value(value: Any) -> str:
    """Return a value as text for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004
    return str(value)


@contextmanager
def progress_bar(what: str) -> Iterator[Any]:
    """Return a callback for the share done, which draws on a terminal's standard error."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty(),
    )  # fmt: skip
    with bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)
