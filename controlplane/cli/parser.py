"""The command line of `weir`: commands of their own, and those of the OpenAPI document.

A command names its function, which is imported on call. This module imports neither Django nor
planners, so `weir --help` is fast.
"""

from argparse import REMAINDER, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from controlplane.cli.codes import ABOUT, DIFFERENT, CliError, ExitCode
from controlplane.cli.command_parser import (
    COMMON,
    LOCAL,
    SITE,
    CommandParser,
    add_cluster_command,
    add_command,
    add_common,
    add_follow_options,
    add_group,
    duration,
)
from controlplane.cli.operations.parsers import add_operations
from controlplane.cli.query_options import add_query_options
from controlplane.installation import env
from controlplane.installation.extras import has_lab

_FORMATS: Final = ["json", "ndjson", "csv", "arrow", "parquet"]
# By its URL ("": this installation), with the options of the connection.
Source = Callable[[Namespace], Mapping[str, Any]]


def parser(document: Mapping[str, Any] | None, words: Sequence[str] = ()) -> ArgumentParser:
    """Return the parser of all commands; None: of the commands without a document.

    `words`: those of a call whose command alone has to be complete.
    """
    codes = "\n".join(f"  {code.value:>3}  {about}" for code, about in ABOUT.items())
    top = CommandParser(
        prog="weir",
        description="Weir at the terminal.",
        epilog=f"exit codes:\n{codes}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.set_defaults(**COMMON)
    add_common(top)
    top.add_argument("--version", action="version", version=f"weir {version('weir')}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    groups: dict[str, Any] = {}
    for name, (about, add) in _GROUPS.items():
        groups[name] = add_group(commands, name, about)
        add(groups[name])
    for add_single in (_serve, _plan, _watch, _tail, _sql, _documents):
        add_single(commands)
    if document is not None:
        add_operations(commands, groups, document, words)
    return top


def parsed(arguments: Sequence[str], source: Source) -> Namespace:
    """Return a call. Raises `CliError`."""
    connection, words = _without_common(arguments)
    url = env.text("WEIR_URL") if connection.url is None else connection.url
    connection.url = url
    needs_document = not {" ".join(words[:1]), " ".join(words[:2])} & _own_commands()
    top = parser(source(connection) if needs_document else None, words)
    given = top.parse_args(arguments)
    is_local = given.run in LOCAL.keys() | SITE
    if given.run in LOCAL and any(getattr(given, name) for name in COMMON if name != "json"):
        message = f"this command calls no Weir: {LOCAL[given.run]}"
        raise CliError(
            ExitCode.WRONG, message, advice="omit --as, --url, --token-file and --ca-file"
        )
    given.url = "" if is_local else url
    return given


def _without_common(arguments: Sequence[str]) -> tuple[Namespace, list[str]]:
    common = CommandParser(add_help=False, allow_abbrev=False)
    common.set_defaults(**COMMON)
    add_common(common)
    return common.parse_known_args(arguments)


def exit_code(refused: CliError, arguments: Sequence[str]) -> ExitCode:
    """Return the exit code of a refused call: `weir diff` keeps the code of what is wrong."""
    if refused.code == ExitCode.WRONG and "diff" in arguments:
        with suppress(CliError):
            is_diff = _without_common(arguments)[1][:1] == ["diff"]
            return ExitCode.REFUSED if is_diff else refused.code
    return refused.code


def _own_commands() -> set[str]:
    return {name for name, _ in commands_of(parser(None))}


def commands_of(top: ArgumentParser, name: str = "") -> Sequence[tuple[str, ArgumentParser]]:
    """Return the commands by name, each with its parser."""
    choices = [action.choices for action in top._actions if action.nargs == "A..."]  # noqa: SLF001 - argparse has no public name for it
    if not choices:
        return [(name, top)]
    return [
        item
        for word, sub in dict(choices[0] or {}).items()
        for item in commands_of(sub, f"{name} {word}".strip())
    ]


def _serve(commands: Any) -> None:
    about = "run Weir on this machine until Ctrl-C; settings are environment variables"
    sub = add_command(commands, "serve", "site.serve", about)
    sub.add_argument("--data", metavar="DIR", help="data directory (WEIR_DATA)")
    sub.add_argument("--host", help="address to listen on (WEIR_HOST, else 127.0.0.1)")
    sub.add_argument("--port", metavar="N", help="(WEIR_PORT, else 8000)")
    sub.add_argument("--demo", metavar="NAMES", help="sf, web, or sf,web; 0: none (WEIR_DEMO)")
    about = "run one process of Weir alone, for systemd and containers"
    sub = add_command(commands, "process", "site.process", about)
    sub.add_argument("name", help="agent, beat, lab, relay, web, webhooks or worker")
    about = "run none: exit code 0 if one of the kind has a young heartbeat, else 1"
    sub.add_argument("--check", action="store_true", help=about)
    about = "become an executor of Spark on Kubernetes, which starts it"
    add_command(commands, "executor", "site.executor", about)
    about = "collect static files and compile in advance, so that starts and plans are faster"
    add_command(commands, "prepare", "site.prepare", about)
    about = "copy the databases of this Weir, and while it is stopped Redis and checkpoints"
    sub = add_command(commands, "backup", "backups.backup", about)
    sub.add_argument("folder", type=Path, metavar="DIR", help="new or empty")
    sub = add_command(commands, "restore", "backups.restore", "replace this Weir by a backup")
    sub.add_argument("folder", type=Path, metavar="DIR")
    sub.add_argument("--force", action="store_true", help="also if this Weir has rows")
    about = "what an upgrade to this release would meet; exit code 1 if it should wait"
    sub = add_command(commands, "upgrade", "backups.upgrade", about)
    sub.add_argument("--check", action="store_true", help="only look: a start upgrades")
    about = "a management command of Django on this Weir, as createsuperuser"
    sub = add_command(commands, "manage", "site.manage", about)
    sub.add_argument("words", nargs=REMAINDER, metavar="...", help="help lists the commands")


def _clusters(group: Any) -> None:
    sub = add_cluster_command(group, "skip-batch", "skip_batch.skip_batch",
                   "what skipping the stuck batch loses; with --batch, skip it")  # fmt: skip
    sub.add_argument("--batch", type=int, metavar="N", help="skip this batch: its records are lost")
    sub.add_argument("--reason", default="", help="kept in the audit log; needed to skip")


def _streams(group: Any) -> None:
    sub = add_command(
        group, "infer", "streams.infer_schema", "propose a schema from a sample, as YAML"
    )
    sub.add_argument("file", type=Path, help="JSON, lines of JSON, CSV, Arrow or Parquet")
    sub.add_argument("--format", choices=_FORMATS, help="(default: by the file's name)")
    about = "register a stream; without --apply only print its schema"
    sub = add_cluster_command(group, "declare", "streams.declare_stream", about, "stream")
    source = sub.add_mutually_exclusive_group(required=True)
    source.add_argument("--schema", type=Path, metavar="FILE", help="YAML or JSON; - is stdin")
    source.add_argument("--sample", type=Path, metavar="FILE", help="records to propose one from")
    sub.add_argument("--format", choices=_FORMATS, help="of the sample (default: by its name)")
    sub.add_argument("--event-time", metavar="COLUMN", help="another one than is proposed")
    sub.add_argument("--title", default="")
    sub.add_argument("--rate", type=float, metavar="R", help="declared, in records/s")
    sub.add_argument("--apply", action="store_true", help="do it")
    about = "change the schema of a stream; without --apply only print the effect"
    sub = add_cluster_command(
        group, "change", "streams.change_schema", about, "stream", reason=True
    )
    sub.add_argument("--schema", type=Path, metavar="FILE", help="the whole schema; - is stdin")
    sub.add_argument("--column", action="append", default=[], metavar="NAME:TYPE",
                     help="add a column, or give it a wider type; may repeat")  # fmt: skip
    sub.add_argument("--remove", action="append", default=[], metavar="NAME", help="may repeat")
    for name in ("watermark-delay", "max-future", "idle-after"):
        sub.add_argument(f"--{name}", type=float, metavar="SECONDS")
    sub.add_argument("--apply", action="store_true", help="do it: all of it or nothing")
    about = "show the characteristics of a stream, or declare those that are given"
    sub = add_cluster_command(
        group,
        "characteristics",
        "streams.characteristics",
        about,
        "stream",
        reason=True,
    )
    about = "to declare, as average=60 transition=trend; without a value: not any more"
    sub.add_argument("values", nargs="*", metavar="NAME=VALUE", help=about)


def _dead_letters(group: Any) -> None:
    about = "append dead letters again, under the present schemas"
    sub = add_cluster_command(group, "replay", "dead_letters.replay_dead_letters", about)
    sub.add_argument("--zone", default="", help="of times that name none, as Europe/Berlin")
    sub.add_argument("ids", nargs="*", metavar="id", help="(default: as the options select)")
    sub.add_argument("--all", action="store_true", help="all of the cluster")
    sub.add_argument("--stream", metavar="NAME")
    sub.add_argument("--why", metavar="REASON", help="of those with this reason")


def _queries(group: Any) -> None:
    sub = add_cluster_command(
        group, "submit", "queries.submit_queries", "submit queries: all of them or none"
    )
    sub.add_argument("name", nargs="?", help="of one query; several come from --input")
    add_query_options(sub)
    sub.add_argument(
        "--input", type=Path, metavar="FILE",
        help="YAML or JSON with a list `queries`, as in a cluster's description; - is stdin",
    )  # fmt: skip


def _plan(commands: Any) -> None:
    about = "ask a planner for a plan: a proposal, or with --input a plan for a described cluster"
    sub = add_command(commands, "plan", "plan_request.plan", about)
    sub.add_argument("planner", help="name of a planner, as placement")
    sub.add_argument("cluster", nargs="?", help="a cluster that Weir runs")
    sub.add_argument(
        "--input", type=Path, metavar="FILE", help="a description; no database; - is stdin"
    )
    sub.add_argument("--algorithm", default="", metavar="NAME", help="the planner's default")
    sub.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="may be repeated"
    )
    sub.add_argument("--no-wait", dest="wait", action="store_false", help="do not wait for it")
    sub.add_argument("--here", action="store_true", help="compute in this process, not a worker")
    sub.add_argument("--timeout", type=duration, default=600, metavar="SECONDS", help="(600)")


def _proposals(group: Any) -> None:
    sub = add_command(
        group,
        "show",
        "plan_request.show_proposal",
        "a proposal, its seal, and what may be done",
    )
    sub.add_argument("id", type=int)
    sub.add_argument("--actions", type=int, default=20, metavar="N", help="how many actions (20)")


def _watch(commands: Any) -> None:
    sub = add_cluster_command(
        commands, "watch", "watch.watch_cluster", "follow a cluster, or one proposal"
    )
    sub.add_argument(
        "--proposal", type=int, metavar="ID", help="until it ends; exit code 0 if it was executed"
    )
    add_follow_options(sub)


def _tail(commands: Any) -> None:
    sub = add_cluster_command(
        commands, "tail", "watch.tail_query", "follow the windows of a query", "query"
    )
    sub.add_argument("--final-only", action="store_true", help="omit windows that may change")
    sub.add_argument("--after", default="", metavar="ID", help="continue after this event")
    add_follow_options(sub)


def _sql(commands: Any) -> None:
    about = "run a SELECT over the results of a cluster's queries: each query is a view"
    sub = add_command(commands, "sql", "sql.run_statement", about)
    sub.add_argument("statement", help="as 'SELECT * FROM \"my-query\" WHERE final LIMIT 9'")
    sub.add_argument("--cluster", required=True)
    sub.add_argument("--format", choices=("table", "csv", "json", "parquet", "arrow"),
                     help="(default: by the file's name, else table)")  # fmt: skip
    sub.add_argument("--output", type=Path, metavar="FILE")


def _lab(group: Any) -> None:
    sub = add_command(group, "run", "lab.run_experiment", "run an experiment in this process")
    sub.add_argument("planner")
    sub.add_argument("experiment")
    sub.add_argument("--param", action="append", default=[], metavar="NAME=VALUE")
    sub.add_argument("--values", nargs="+", metavar="X", help="values of the swept parameter")
    sub.add_argument("--series", nargs="+", metavar="NAME", help="series to compare")
    sub.add_argument("--seeds", metavar="N", help="workloads per point")
    sub.add_argument("--out", type=Path, metavar="FILE", help=".csv, .json, .svg or .html")


def _documents(commands: Any) -> None:
    sub = add_cluster_command(commands, "export", "documents.export_cluster", "describe a cluster")
    sub.add_argument("--no-measures", dest="measures", action="store_false",
                     help="omit the measures of queries")  # fmt: skip
    for name, about in (
        ("diff", f"what `weir apply` would change; exit code {DIFFERENT} if anything, "
                 f"{ExitCode.REFUSED} for what is wrong"),
        ("apply", "create or update described clusters: of each all changes, or none"),
    ):  # fmt: skip
        sub = add_command(commands, name, f"documents.{name}", about)
        sub.add_argument("files", type=Path, nargs="+", metavar="FILE",
                         help="YAML or JSON; a directory: all files of it; - is stdin")  # fmt: skip
        sub.add_argument("--prune", action="store_true",
                         help="end and remove what a description does not name")  # fmt: skip
    sub.add_argument("--reason", default="", help="kept in the audit log")
    about = "the JSON schema of a description"
    add_command(commands, "schema", "documents.print_schema", about)


_GROUPS: Final = {
    "clusters": ("clusters: list, show, start, stop and change them", _clusters),
    "streams": ("streams: declare them, append records, change their schemas", _streams),
    "dead-letters": ("records that do not fit: list, export and append again", _dead_letters),
    "queries": ("queries: submit, show and end them, and read their results", _queries),
    "proposals": ("plans: look at them and decide on them", _proposals),
    **({"lab": ("the Lab: experiments and runs", _lab)} if has_lab() else {}),
}
