"""Output: tables for people (outside of a terminal 80 columns without colour), and JSON."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

WIDTH: Final = 80
Columns = Mapping[str, str]


def console() -> Console:
    """Return the console; without a terminal it is 80 columns wide."""
    terminal = Console(highlight=False, soft_wrap=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=WIDTH)


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
    """Print rows under the columns; of these, by title, what they hold: text, name, number, names
    (the first and the number of others) or moment.

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
        cells = zip(columns.values(), row, strict=True)
        table.add_row(*(Text(_CELLS.get(kind, format_value)(value)) for kind, value in cells))
    _print(table)


def print_answer(given: Namespace, values: Any, text: str) -> None:
    """Print what a command did: as JSON, or for people as a sentence."""
    if given.json:
        print_json(values)
    else:
        print_sentence(text)


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
    if isinstance(value, dict | list):
        return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004
    return str(value)


def _time(moment: datetime | str | float | None, form: str) -> str:
    """Return a time as text; one of the API is ISO 8601, or in ms since the epoch."""
    if moment is None:
        return "-"
    if isinstance(moment, int | float):
        return f"{datetime.fromtimestamp(moment / 1000, UTC):{form}}"
    return f"{datetime.fromisoformat(moment) if isinstance(moment, str) else moment:{form}}"


def _first(names: Sequence[Any]) -> str:
    more = f" and {len(names) - 1:,} more" if names[1:] else ""
    return "".join(map(str, names[:1])) + more


_CELLS: Final[Mapping[str, Callable[[Any], str]]] = {
    "names": lambda names: _first(names or ()),
    "pairs": lambda values: " ".join(f"{name}={value}" for name, value in (values or {}).items()),
    "moment": lambda moment: _time(moment, "%m-%d %H:%M"),
}


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
