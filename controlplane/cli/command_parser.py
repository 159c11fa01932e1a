"""The parts of the command line that all groups of commands share."""

from argparse import ArgumentParser
from typing import Any, Final, NoReturn

from controlplane import env
from controlplane.cli.codes import Code, Refused

# The functions of commands that also call the API of a Weir elsewhere.
ELSEWHERE: Final = frozenset(
    {
        "operations", "cluster_changes.set_desired_state", "cluster_changes.set_nodes",
        "cluster_changes.limit", "dead_letters.delete_dead_letters",
        "dead_letters.export_dead_letters", "dead_letters.list_dead_letters",
        "dead_letters.replay_dead_letters", "plan_request.plan", "proposals.apply_verb",
        "proposals.list_proposals", "proposals.list_queue", "proposals.show_proposal",
        "queries.end_queries", "queries.list_queries", "queries.set_retention",
        "queries.show_query", "queries.submit_queries",
    }
)  # fmt: skip


class CommandParser(ArgumentParser):
    """A parser that raises `Refused` for an invalid call."""

    def error(self, message: str) -> NoReturn:
        """Raise `Refused` with the message."""
        raise Refused(Code.WRONG, message, advice=f"{self.prog} --help")


def add_group(commands: Any, name: str, about: str) -> Any:
    """Add a group of commands and return it."""
    group = commands.add_parser(name, help=about, description=f"{about}.", allow_abbrev=False)
    return group.add_subparsers(metavar="COMMAND", required=True)


def add_command(commands: Any, name: str, run: str, about: str, *, acts: bool = True) -> Any:
    """Add a command; run: its module and function below controlplane.cli.commands."""
    sub = commands.add_parser(name, help=about, description=f"{about}.", allow_abbrev=False)
    sub.set_defaults(run=run, user="", url="", database=acts)
    sub.add_argument("--json", action="store_true", help="print JSON, for scripts")
    if acts:
        sub.add_argument(
            "--as", dest="user", default="", metavar="USER",
            help="the user of Weir who acts (default: WEIR_USER, else the login name)",
        )  # fmt: skip
        _add_connection(sub)
    return sub


def _add_connection(sub: Any) -> None:
    """Add the options of a Weir elsewhere."""
    group = sub.add_argument_group("a Weir elsewhere")
    group.add_argument("--url", default=env.text("WEIR_URL"), metavar="URL",
                       help="its address, as https://weir.example.org (WEIR_URL)")  # fmt: skip
    about = "holds the token of its API, mode 600 (WEIR_TOKEN_FILE; or WEIR_TOKEN, the token)"
    group.add_argument("--token-file", default="", metavar="FILE", help=about)
    about = "certificates of its own authority (WEIR_CA_FILE)"
    group.add_argument("--ca-file", default="", metavar="FILE", help=about)


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


def add_pages(sub: Any) -> None:
    """Add the options of a list with pages."""
    sub.add_argument("--page", type=int, default=1, metavar="N")
    sub.add_argument("--per-page", type=int, default=50, metavar="N", help="up to 1000 (50)")
