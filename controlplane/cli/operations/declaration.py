"""The declaration of a command that calls one operation of the API."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.cli.waiting import Wait

Columns = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Option:
    """An option of a command: a value of the query string, or of the JSON body.

    `field`: the name in the request, by default that of the option. `many`: the option takes
    several values, as a list.
    """

    name: str
    about: str = ""
    field: str = ""
    type: Callable[[str], Any] | None = None
    metavar: str = "TEXT"
    required: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    flag: bool | None = None

    @property
    def target(self) -> str:
        """Return the name of the value in the request."""
        return self.field or self.name.replace("-", "_")


@dataclass(frozen=True)
class Operation:
    """A command and its operation.

    `command`: group and name. `path`: below /api/v1; the parameters in braces are positional
    arguments, in this order; those in `numbers` are whole numbers. `query` and `body`: options.
    `settings`: the help of NAME=VALUE, further values of the body, "" without them. `data`: what
    --data, a file with the whole body, holds, "" without it. `rows`: the name of the list in the
    response, "" if the response is a list, None if it is an object. `columns`: those of a table.
    `has_failed`: True if the response means exit code 1. `sentence`: the output for people, with
    values of the arguments and of the response in braces.
    """

    command: str
    method: str
    path: str
    about: str
    query: tuple[Option, ...] = ()
    body: tuple[Option, ...] = ()
    settings: str = ""
    data: str = ""
    rows: str | None = None
    columns: Columns = field(default_factory=dict)
    empty: str = "nothing"
    sentence: str = ""
    wait: Wait | None = None
    has_failed: Callable[[Any], bool] = lambda answer: False
    numbers: tuple[str, ...] = ("id", "delivery", "index", "version")

    @property
    def group(self) -> str:
        """Return the group of the command, "" for a command without one."""
        return self.command.rpartition(" ")[0]

    @property
    def name(self) -> str:
        """Return the name of the command in its group."""
        return self.command.rpartition(" ")[2]

    @property
    def arguments(self) -> list[str]:
        """Return the names of the parameters in the path."""
        return [part.partition("}")[0] for part in self.path.split("{")[1:]]


REASON: Final = (Option("reason", "kept in the audit log"),)
PAGED: Final = (
    Option("page", "(1)", type=int, metavar="N"),
    Option("per-page", "up to 1000 (50)", type=int, metavar="N"),
)
