"""The parts of the command line that all groups of commands share."""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from typing import Any, Final, NoReturn

from controlplane.cli.codes import CliError, ExitCode

# The options of all commands that call a Weir, by attribute. They may precede a command or follow
# it; so these defaults are those of `weir` alone, and a command without the option leaves them.
COMMON: Final = {"acting_user": "", "url": None, "token_file": "", "ca_file": "", "json": False}
_LONGEST: Final = 1_000_000
# Commands that compute in this process, from files alone: they call no Weir, here or elsewhere.
LOCAL: Final = {
    "documents.print_schema": "the format of descriptions is that of this program",
    "lab.run_experiment": "`weir lab start` lets a worker of Weir run it",
    "streams.infer_schema": "it reads a file of this machine",
}
# Commands that run, prepare and manage the Weir of this machine: they start without Django.
SITE: Final = frozenset({
    "site.serve", "site.process", "site.executor", "site.prepare", "site.manage",
    "backups.backup", "backups.restore", "backups.upgrade",
})  # fmt: skip


def duration(text: str) -> float:
    """Return the number of an option, in its unit. Raises `ArgumentTypeError`."""
    value = float(text)
    if not 0 <= value <= _LONGEST:
        raise ArgumentTypeError(f"{text}: must be from 0 to {_LONGEST:,}")
    return value


class CommandParser(ArgumentParser):
    """A parser that raises `CliError` for an invalid call."""

    def error(self, message: str) -> NoReturn:
        """Raise `CliError` with the message."""
        raise CliError(ExitCode.WRONG, message, advice=f"{self.prog} --help")


def add_group(commands: Any, name: str, about: str) -> Any:
    """Add a group of commands and return it."""
    group = commands.add_parser(name, help=about, description=f"{about}.", allow_abbrev=False)
    add_common(group)
    return group.add_subparsers(metavar="COMMAND", required=True)


def add_command(commands: Any, name: str, run: str, about: str, description: str = "") -> Any:
    """Add a command; run: its module and function below controlplane.cli.commands.

    `description`: by default a sentence of `about`.
    """
    description = description or f"{about}."
    if run in LOCAL:
        description += f" Computes in this process, without a Weir: {LOCAL[run]}."
    sub = commands.add_parser(
        name, help=about.replace("%", "%%"), description=description.replace("%", "%%"),
        allow_abbrev=False,
    )  # fmt: skip
    sub.set_defaults(run=run)
    if not run.startswith("site."):
        add_common(sub, is_local=run in LOCAL.keys() | SITE)
    return sub


def add_common(parser: Any, *, is_local: bool = False) -> None:
    """Add the options `COMMON` to `weir`, a group or a command; of a local command --json alone."""
    common = {"default": SUPPRESS}
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts", **common)
    if is_local:
        return
    about = "the user of Weir who acts (default: WEIR_USER, else the login name)"
    parser.add_argument("--as", dest="acting_user", metavar="USER", help=about, **common)
    group = parser.add_argument_group("a Weir elsewhere")
    about = 'its address, as https://weir.example.org (WEIR_URL); "": the Weir of this machine'
    group.add_argument("--url", metavar="URL", help=about, **common)
    about = "holds the token of its API, mode 600 (WEIR_TOKEN_FILE; or WEIR_TOKEN, the token)"
    group.add_argument("--token-file", metavar="FILE", help=about, **common)
    about = "certificates of its own authority (WEIR_CA_FILE)"
    group.add_argument("--ca-file", metavar="FILE", help=about, **common)


def add_cluster_command(
    commands: Any, name: str, run: str, about: str, *arguments: str, reason: bool = False
) -> Any:
    """Add a command on a cluster with positional arguments, and --reason if it changes rows."""
    sub = add_command(commands, name, run, about)
    for argument in ("cluster", *arguments):
        sub.add_argument(argument)
    if reason:
        sub.add_argument("--reason", default="", help="kept in the audit log")
    return sub


def add_follow_options(sub: Any) -> None:
    """Add how often, and for how long, a command reads what it follows."""
    sub.add_argument("--every", type=duration, default=1.0, metavar="SECONDS", help="(1)")
    sub.add_argument("--for", dest="seconds", type=duration, metavar="SECONDS",
                     help="at most so long")  # fmt: skip
