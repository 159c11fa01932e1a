"""The table of all commands on the page cli.md; `python -m docs.command_table` writes it."""

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controlplane.cli.parser import parser

PAGE: Final = Path(__file__).with_name("cli.md")
BEGIN: Final = "<!-- commands -->\n"
END: Final = "<!-- end of commands -->\n"


def commands(top: ArgumentParser, name: str = "") -> Iterator[tuple[str, ArgumentParser]]:
    """Yield each command by its name, and its parser."""
    groups = [action for action in top._actions if isinstance(action, _SubParsersAction)]  # noqa: SLF001 - argparse has no public name for it
    for choices in (action.choices for action in groups):
        for word, sub in choices.items():
            yield from commands(sub, f"{name} {word}".strip())
    if not groups:
        yield name, top


def table() -> str:
    """Return the table of all commands with their arguments, derived from the parser."""
    rows = sorted(
        f"| `{name}{_arguments(sub)}` | {(sub.description or '').rstrip('.')} |"
        for name, sub in commands(parser())
    )
    return "\n".join(["| command | effect |", "|---|---|", *rows, ""])


def written(text: str) -> str:
    """Return the text of the page with the present table."""
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


def _arguments(sub: ArgumentParser) -> str:
    names = [
        str(action.metavar or action.dest).upper()
        for action in sub._actions  # noqa: SLF001 - argparse has no public name for it
        if not action.option_strings
    ]
    return "".join(f" {name}" for name in names)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
