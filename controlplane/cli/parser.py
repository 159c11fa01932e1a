"""The command line of `weir`; a command names the function that carries it out, imported then.

Nothing here imports Django or the planners: `weir --help` answers at once.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from controlplane.cli.codes import ABOUT, Code, Refused
from controlplane.cli.parser_streams import add_dead_letters, add_streams
from controlplane.plans.proposal_states import SAID


class _Parser(ArgumentParser):
    """A parser that says what is wrong with a call as all of `weir` does."""

    def error(self, message: str) -> NoReturn:
        raise Refused(Code.WRONG, message, advice=f"{self.prog} --help")


def parser() -> ArgumentParser:
    """Return the parser of all commands."""
    codes = "\n".join(f"  {code.value:>3}  {about}" for code, about in ABOUT.items())
    top = _Parser(
        prog="weir",
        description="Weir at the terminal.",
        epilog=f"exit codes:\n{codes}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    _clusters(_group(commands, "clusters", "list, show, start and stop clusters"))
    _streams(_group(commands, "streams", "list and declare streams, change their schemas"))
    about = "list, export and append again records that do not fit"
    add_dead_letters(_group(commands, "dead-letters", about), _command)
    _queries(_group(commands, "queries", "list, show, submit and end queries"))
    _plan(commands)
    _proposals(_group(commands, "proposals", "look at proposals and decide on them"))
    _watch(commands)
    _tail(commands)
    _lab(_group(commands, "lab", "list and run the Lab's experiments"))
    _documents(commands)
    return top


def parsed(arguments: Sequence[str]) -> Namespace:
    """Return a call. Raises `Refused`."""
    return parser().parse_args(arguments)


def _group(commands: Any, name: str, about: str) -> Any:
    group = commands.add_parser(name, help=about, description=f"{about}.", allow_abbrev=False)
    return group.add_subparsers(metavar="COMMAND", required=True)


def _command(commands: Any, name: str, run: str, about: str, *, acts: bool = True) -> Any:
    """Add a command; run: module and function below controlplane.cli that carry it out."""
    one = commands.add_parser(name, help=about, description=f"{about}.", allow_abbrev=False)
    one.set_defaults(run=run, user="", database=acts)
    one.add_argument("--json", action="store_true", help="print JSON, for scripts")
    if acts:
        one.add_argument(
            "--as", dest="user", default="", metavar="USER",
            help="the user of Weir who acts (default: WEIR_USER, else the login name)",
        )  # fmt: skip
    return one


def _clusters(group: Any) -> None:
    _command(group, "list", "clusters.listed", "all clusters")
    _command(group, "show", "clusters.shown", "a cluster and its nodes").add_argument("cluster")
    _command(
        group, "health", "health.shown", "progress, restarts and incidents of a cluster"
    ).add_argument("cluster")
    one = _command(group, "decide", "health.decided", "decide about an incident of a cluster")
    one.add_argument("cluster")
    one.add_argument("incident", type=int, help="its number, as `health` prints it")
    one.add_argument("choice", help="one of its choices")
    one.add_argument("--reason", default="", help="kept in the audit log")
    one = _command(group, "skip-batch", "stuck_batch.skip",
                   "what skipping the stuck batch loses; with --batch, skip it")  # fmt: skip
    one.add_argument("cluster")
    one.add_argument("--batch", type=int, metavar="N", help="skip this batch: its records are lost")
    one.add_argument("--reason", default="", help="kept in the audit log; needed to skip")
    for name, about in (("start", "ask for a running application"), ("stop", "ask for none")):
        one = _command(group, name, f"clusters.{name}", about)
        one.add_argument("cluster")
        one.add_argument("--reason", default="", help="kept in the audit log")
    one = _command(group, "nodes", "clusters.set_nodes", "change the number of nodes")
    one.add_argument("cluster")
    one.add_argument("nodes", type=int, help="nodes that are removed must have no queries")
    one.add_argument("--reason", default="", help="kept in the audit log")
    one = _command(group, "limit", "clusters.limit", "bound the micro-batches")
    one.add_argument("cluster")
    one.add_argument("--max-records", type=int, metavar="N", help="records of a batch, at most")
    one.add_argument("--max-batch-mb", type=int, metavar="N", help="MiB of a batch, at most")
    one.add_argument("--reason", default="", help="kept in the audit log")


def _paged(one: Any) -> None:
    one.add_argument("--page", type=int, default=1, metavar="N")
    one.add_argument("--per-page", type=int, default=50, metavar="N", help="up to 1000 (50)")


def _streams(group: Any) -> None:
    one = _command(group, "list", "streams.listed", "the streams of a cluster")
    one.add_argument("cluster")
    one.add_argument("--search", default="", metavar="TEXT", help="in name or title")
    one.add_argument("--order", default="name", choices=["name", "rate", "queries", "split"])
    one.add_argument("--reverse", action="store_true", help="the largest first")
    _paged(one)
    add_streams(group, _command)


def _queries(group: Any) -> None:
    one = _command(group, "list", "queries.listed", "the queries of a cluster")
    one.add_argument("cluster")
    one.add_argument("--state", default="live", help="live (default), all, pending, running, ...")
    one.add_argument("--search", default="", metavar="TEXT", help="in the name")
    one.add_argument("--node", type=int, metavar="INDEX")
    one.add_argument("--stream", default="", metavar="NAME")
    _paged(one)
    one = _command(group, "show", "queries.shown", "one query")
    one.add_argument("cluster")
    one.add_argument("name")
    one = _command(group, "retain", "queries.retained", "change how long windows are kept")
    one.add_argument("cluster")
    one.add_argument("name")
    one.add_argument("--seconds", type=int, metavar="N", help="of event time")
    one.add_argument("--windows", type=int, metavar="N", help="at most")
    one.add_argument("--reason", default="", help="kept in the audit log")
    one = _command(group, "submit", "queries.submitted", "submit queries: all of them or none")
    one.add_argument("cluster")
    one.add_argument("name", nargs="?", help="of one query; several come from --input")
    one.add_argument("--stream", action="append", default=[], metavar="NAME", help="may repeat")
    one.add_argument(
        "--aggregate",
        action="append",
        default=[],
        metavar="NAME=EXPRESSION",
        help="such as records=count(*); may repeat",
    )
    one.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column to group by, such as stream; may repeat",
    )
    one.add_argument("--where", default="", metavar="CONDITION", help="which records count")
    one.add_argument("--window", type=float, default=60.0, metavar="SECONDS")
    one.add_argument("--slide", type=float, metavar="SECONDS", help="the window's by default")
    one.add_argument(
        "--retention",
        type=int,
        metavar="SECONDS",
        help="event time for which windows are kept (604800: seven days)",
    )
    one.add_argument(
        "--retention-windows", type=int, metavar="N", help="windows kept at most (1000000)"
    )
    one.add_argument(
        "--input", type=Path, metavar="FILE",
        help="YAML or JSON with a list `queries`, as in a cluster's description; - is stdin",
    )  # fmt: skip
    one = _command(group, "end", "queries.ended", "end live queries: all of them or none")
    one.add_argument("cluster")
    one.add_argument("names", nargs="+", metavar="name")
    one.add_argument("--reason", default="", help="kept in the audit log")


def _plan(commands: Any) -> None:
    about = "ask a planner for a plan: a proposal, or with --input a plan for a described cluster"
    one = _command(commands, "plan", "planning.planned", about)
    one.add_argument("planner", help="name of a planner, as placement")
    one.add_argument("cluster", nargs="?", help="a cluster that Weir runs")
    one.add_argument(
        "--input", type=Path, metavar="FILE", help="a description; no database; - is stdin"
    )
    one.add_argument("--algorithm", default="", metavar="NAME", help="the planner's default")
    one.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="may be repeated"
    )
    one.add_argument("--no-wait", dest="wait", action="store_false", help="do not wait for it")
    one.add_argument("--here", action="store_true", help="compute in this process, not a worker")
    one.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="(600)")


def _proposals(group: Any) -> None:
    one = _command(group, "list", "proposals.listed", "the proposals of a cluster, newest first")
    one.add_argument("cluster")
    one.add_argument("--state", default="", help="ready, executing, done, ...")
    _paged(one)
    one = _command(group, "show", "proposals.shown", "a proposal, its seal, and what may be done")
    one.add_argument("id", type=int)
    one.add_argument("--actions", type=int, default=20, metavar="N", help="how many actions (20)")
    for verb in SAID:
        one = _command(
            group, verb.path, "proposals.said", f"{verb.about[0].lower()}{verb.about[1:]}"
        )
        one.set_defaults(verb=verb.path, seal="")
        one.add_argument("id", type=int)
        if verb.seal:
            one.add_argument("--seal", required=True, help="as `weir proposals show` prints it")
        one.add_argument("--reason", default="", required=verb.reason, help="kept in the audit log")


def _watch(commands: Any) -> None:
    one = _command(commands, "watch", "watching.watched", "follow a cluster, or one proposal")
    one.add_argument("cluster")
    one.add_argument(
        "--proposal", type=int, metavar="ID", help="until it ends; 0 where it was carried out"
    )
    one.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="(1)")
    one.add_argument("--for", dest="seconds", type=float, metavar="SECONDS", help="and no longer")


def _tail(commands: Any) -> None:
    one = _command(commands, "tail", "following.tailed", "follow the windows of a query")
    one.add_argument("cluster")
    one.add_argument("query")
    one.add_argument("--final-only", action="store_true", help="leave out what still changes")
    one.add_argument("--after", default="", metavar="ID", help="go on behind an event's id")
    one.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="(1)")
    one.add_argument("--for", dest="seconds", type=float, metavar="SECONDS", help="and no longer")


def _lab(group: Any) -> None:
    one = _command(group, "list", "lab.listed", "the experiments", acts=False)
    one.add_argument("planner", nargs="?", default="")
    one = _command(group, "run", "lab.run", "run an experiment here and now", acts=False)
    one.add_argument("planner")
    one.add_argument("experiment")
    one.add_argument("--param", action="append", default=[], metavar="NAME=VALUE")
    one.add_argument("--values", nargs="+", metavar="X", help="values of what is swept")
    one.add_argument("--series", nargs="+", metavar="NAME", help="series to compare")
    one.add_argument("--seeds", metavar="N", help="workloads per point")
    one.add_argument("--out", type=Path, metavar="FILE", help=".csv, .json or .html")


def _documents(commands: Any) -> None:
    one = _command(commands, "export", "documents.exported", "describe a whole cluster")
    one.add_argument("cluster")
    one.add_argument("--no-measures", dest="measures", action="store_false",
                     help="leave out what queries were measured at")  # fmt: skip
    about = "bring a described cluster into Weir; without --apply only say what that would do"
    one = _command(commands, "import", "documents.imported", about)
    one.add_argument("file", type=Path, help="YAML or JSON; - is stdin")
    one.add_argument("--apply", action="store_true", help="do it: all of it or nothing")
    one.add_argument("--reason", default="", help="kept in the audit log")
    _command(commands, "schema", "documents.schema", "the JSON schema of a description",
             acts=False)  # fmt: skip
