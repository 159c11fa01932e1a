"""The command line of `weir`; a command names its function, which is imported on call.

This module imports neither Django nor planners, so `weir --help` is fast.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn

from controlplane.cli.codes import ABOUT, Code, Refused
from controlplane.cli.query_options import add_query_options
from controlplane.plans.proposal_states import SAID

_FORMATS: Final = ["json", "ndjson", "csv", "arrow", "parquet"]
_REASONS: Final = ["body", "future", "no_time", "schema", "unreadable"]


class _Parser(ArgumentParser):
    """A parser that raises `Refused` for an invalid call."""

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
    _dead_letters(_group(commands, "dead-letters", about))
    _queries(_group(commands, "queries", "list, show, submit and end queries"))
    about = "show, arm and drill ladders of load shedding, set weights of queries"
    _shedding(_group(commands, "shedding", about))
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
    """Add a command; run: its module and function below controlplane.cli.commands."""
    sub = commands.add_parser(name, help=about, description=f"{about}.", allow_abbrev=False)
    sub.set_defaults(run=run, user="", database=acts)
    sub.add_argument("--json", action="store_true", help="print JSON, for scripts")
    if acts:
        sub.add_argument(
            "--as", dest="user", default="", metavar="USER",
            help="the user of Weir who acts (default: WEIR_USER, else the login name)",
        )  # fmt: skip
    return sub


def _cluster_command(
    commands: Any, name: str, run: str, about: str, *arguments: str, reason: bool = False
) -> Any:
    """Add a command on a cluster with positional arguments, and --reason if it changes rows."""
    sub = _command(commands, name, run, about)
    for argument in ("cluster", *arguments):
        sub.add_argument(argument)
    if reason:
        sub.add_argument("--reason", default="", help="kept in the audit log")
    return sub


def _clusters(group: Any) -> None:
    _command(group, "list", "clusters.list_clusters", "all clusters")
    _cluster_command(group, "show", "clusters.show_cluster", "a cluster and its nodes")
    about = "progress, restarts and incidents of a cluster"
    _cluster_command(group, "health", "health.show_health", about)
    sub = _cluster_command(
        group,
        "decide",
        "health.decide_incident",
        "decide about an incident of a cluster",
        reason=True,
    )
    sub.add_argument("incident", type=int, help="its number, as `health` prints it")
    sub.add_argument("choice", help="one of its choices")
    sub = _cluster_command(group, "skip-batch", "health.skip_batch",
                   "what skipping the stuck batch loses; with --batch, skip it")  # fmt: skip
    sub.add_argument("--batch", type=int, metavar="N", help="skip this batch: its records are lost")
    sub.add_argument("--reason", default="", help="kept in the audit log; needed to skip")
    for verb in ("start", "stop"):
        about = f"{verb} the application"
        sub = _cluster_command(group, verb, "clusters.set_desired_state", about, reason=True)
        sub.set_defaults(verb=verb)
    sub = _cluster_command(
        group, "nodes", "clusters.set_nodes", "change the number of nodes", reason=True
    )
    sub.add_argument("nodes", type=int, help="nodes that are removed must have no queries")
    sub = _cluster_command(group, "limit", "clusters.limit", "bound the micro-batches", reason=True)
    sub.add_argument("--max-records", type=int, metavar="N", help="records of a batch, at most")
    sub.add_argument("--max-batch-mb", type=int, metavar="N", help="MiB of a batch, at most")
    about = "the split nodes of a cluster"
    _cluster_command(group, "split-nodes", "admission.list_split_nodes", about)
    about = "declare the capacity of every split node"
    sub = _cluster_command(
        group, "split-capacity", "admission.declare_split_capacity", about, reason=True
    )
    sub.add_argument("capacity", type=float, help="records/s; 0: measured")
    sub.add_argument("--emulated", action="store_true", help="limit split nodes to it")


def _paged(sub: Any) -> None:
    sub.add_argument("--page", type=int, default=1, metavar="N")
    sub.add_argument("--per-page", type=int, default=50, metavar="N", help="up to 1000 (50)")


def _streams(group: Any) -> None:
    sub = _cluster_command(group, "list", "streams.list_streams", "the streams of a cluster")
    sub.add_argument("--search", default="", metavar="TEXT", help="in name or title")
    sub.add_argument("--order", default="name", choices=["name", "rate", "queries", "split"])
    sub.add_argument("--reverse", action="store_true", help="the largest first")
    _paged(sub)
    _cluster_command(group, "show", "streams.show_stream", "one stream and its schema", "stream")
    sub = _command(
        group, "infer", "streams.infer_schema", "propose a schema from a sample, as YAML"
    )
    sub.add_argument("file", type=Path, help="JSON, lines of JSON, CSV, Arrow or Parquet")
    sub.add_argument("--format", choices=_FORMATS, help="(default: by the file's name)")
    about = "register a stream; without --apply only print its schema"
    sub = _cluster_command(group, "declare", "streams.declare_stream", about, "stream")
    source = sub.add_mutually_exclusive_group(required=True)
    source.add_argument("--schema", type=Path, metavar="FILE", help="YAML or JSON; - is stdin")
    source.add_argument("--sample", type=Path, metavar="FILE", help="records to propose one from")
    sub.add_argument("--format", choices=_FORMATS, help="of the sample (default: by its name)")
    sub.add_argument("--event-time", metavar="COLUMN", help="another one than is proposed")
    sub.add_argument("--title", default="")
    sub.add_argument("--rate", type=float, metavar="R", help="declared, in records/s")
    sub.add_argument("--apply", action="store_true", help="do it")
    about = "change the schema of a stream; without --apply only print the effect"
    sub = _cluster_command(group, "change", "streams.change_schema", about, "stream", reason=True)
    sub.add_argument("--schema", type=Path, metavar="FILE", help="the whole schema; - is stdin")
    sub.add_argument("--column", action="append", default=[], metavar="NAME:TYPE",
                     help="add a column, or give it a wider type; may repeat")  # fmt: skip
    sub.add_argument("--remove", action="append", default=[], metavar="NAME", help="may repeat")
    for name in ("watermark-delay", "max-future", "idle-after"):
        sub.add_argument(f"--{name}", type=float, metavar="SECONDS")
    sub.add_argument("--apply", action="store_true", help="do it: all of it or nothing")
    _admission(group)


def _admission(group: Any) -> None:
    """Add the commands about split nodes and rates of streams."""
    about = "show the characteristics of a stream, or declare those that are given"
    sub = _cluster_command(
        group, "characteristics", "admission.characteristics", about, "stream", reason=True
    )
    _valued(sub, "to declare, as average=60 transition=trend; without a value: not any more")
    about = "let another split node read a stream"
    sub = _cluster_command(
        group, "redirect", "admission.redirect_stream", about, "stream", reason=True
    )
    sub.add_argument("split", type=int, help="the index of the split node")
    about = "when a stream was redirected, and why"
    _cluster_command(group, "redirections", "admission.list_redirections", about, "stream")
    about = "the forecast of a stream, and what is left for it"
    _cluster_command(group, "outlook", "admission.show_outlook", about, "stream")
    about = "what the admission of a stream would do; changes nothing"
    sub = _cluster_command(group, "what-if", "admission.admit_what_if", about)
    _valued(sub, "its characteristics, as average=60 peak=90 (`characteristics` lists them)")


def _valued(sub: Any, about: str) -> None:
    sub.add_argument("values", nargs="*", metavar="NAME=VALUE", help=about)


def _dead_letters(group: Any) -> None:
    about = "the newest dead letters of a cluster"
    sub = _cluster_command(group, "list", "dead_letters.list_dead_letters", about)
    sub.add_argument("--limit", type=int, default=50, metavar="N", help="up to 500 (50)")
    _chosen(sub)
    about = "print dead letters with their records, the oldest first"
    sub = _cluster_command(group, "export", "dead_letters.export_dead_letters", about)
    sub.add_argument("--format", choices=["ndjson", "csv"], default="ndjson")
    _chosen(sub)
    about = "append dead letters again, under the present schemas"
    sub = _cluster_command(group, "replay", "dead_letters.replay_dead_letters", about)
    sub.add_argument("--zone", default="", help="of times that name none, as Europe/Berlin")
    _chosen(sub, by_id=True)
    about = "delete dead letters"
    sub = _cluster_command(group, "delete", "dead_letters.delete_dead_letters", about, reason=True)
    _chosen(sub, by_id=True)


def _chosen(sub: Any, *, by_id: bool = False) -> None:
    if by_id:
        sub.add_argument(
            "ids", nargs="*", metavar="id", help="(default: all that the filters hold)"
        )
    sub.add_argument("--stream", default="", metavar="NAME")
    sub.add_argument("--why", default="", choices=["", *_REASONS], metavar="REASON",
                     help=", ".join(_REASONS))  # fmt: skip


def _queries(group: Any) -> None:
    sub = _cluster_command(group, "list", "queries.list_queries", "the queries of a cluster")
    sub.add_argument("--state", default="live", help="live (default), all, pending, running, ...")
    sub.add_argument("--search", default="", metavar="TEXT", help="in the name")
    sub.add_argument("--node", type=int, metavar="INDEX")
    sub.add_argument("--stream", default="", metavar="NAME")
    _paged(sub)
    sub = _cluster_command(group, "show", "queries.show_query", "one query", "name")
    about = "the most frequent keys of a query, and what each key grouping would give"
    sub = _cluster_command(group, "keys", "keys.show_keys", about, "name")
    sub = _cluster_command(
        group,
        "retain",
        "queries.set_retention",
        "change how long windows are kept",
        "name",
        reason=True,
    )
    sub.add_argument("--seconds", type=int, metavar="N", help="of event time")
    sub.add_argument("--windows", type=int, metavar="N", help="at most")
    _submit(group)
    _key_groupings(group)
    sub = _cluster_command(
        group, "end", "queries.end_queries", "end live queries: all of them or none", reason=True
    )
    sub.add_argument("names", nargs="+", metavar="name")


def _submit(group: Any) -> None:
    sub = _cluster_command(
        group, "submit", "queries.submit_queries", "submit queries: all of them or none"
    )
    sub.add_argument("name", nargs="?", help="of one query; several come from --input")
    add_query_options(sub)
    sub.add_argument(
        "--input", type=Path, metavar="FILE",
        help="YAML or JSON with a list `queries`, as in a cluster's description; - is stdin",
    )  # fmt: skip


def _key_groupings(group: Any) -> None:
    about = "the key groupings that a query can have, or the parameters of one"
    sub = _command(group, "groupings", "key_groupings.list_key_groupings", about, acts=False)
    sub.add_argument("grouping", nargs="?", default="", help="show its parameters")
    about = "change the key grouping of a running query"
    command = "key_groupings.set_key_grouping"
    sub = _cluster_command(group, "key-grouping", command, about, "name", reason=True)
    sub.add_argument("grouping", help="as `weir queries groupings` prints them")
    sub.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of the grouping; may repeat",
    )  # fmt: skip


def _plan(commands: Any) -> None:
    about = "ask a planner for a plan: a proposal, or with --input a plan for a described cluster"
    sub = _command(commands, "plan", "planning.plan", about)
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
    sub.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="(600)")


def _proposals(group: Any) -> None:
    sub = _cluster_command(
        group, "list", "proposals.list_proposals", "the proposals of a cluster, newest first"
    )
    sub.add_argument("--state", default="", help="ready, executing, done, ...")
    _paged(sub)
    _cluster_command(
        group, "queue", "proposals.list_queue", "the proposals that are computed or wait, in order"
    )
    sub = _command(
        group, "show", "proposals.show_proposal", "a proposal, its seal, and what may be done"
    )
    sub.add_argument("id", type=int)
    sub.add_argument("--actions", type=int, default=20, metavar="N", help="how many actions (20)")
    for verb in SAID:
        sub = _command(
            group, verb.path, "proposals.apply_verb", f"{verb.about[0].lower()}{verb.about[1:]}"
        )
        sub.set_defaults(verb=verb.path, seal="")
        sub.add_argument("id", type=int)
        if verb.seal:
            sub.add_argument("--seal", required=True, help="as `weir proposals show` prints it")
        sub.add_argument("--reason", default="", required=verb.reason, help="kept in the audit log")


def _add_follow_options(sub: Any) -> None:
    sub.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="(1)")
    sub.add_argument("--for", dest="seconds", type=float, metavar="SECONDS", help="at most so long")


def _watch(commands: Any) -> None:
    sub = _cluster_command(
        commands, "watch", "watch.watch_cluster", "follow a cluster, or one proposal"
    )
    sub.add_argument(
        "--proposal", type=int, metavar="ID", help="until it ends; exit code 0 if it was executed"
    )
    _add_follow_options(sub)


def _tail(commands: Any) -> None:
    sub = _cluster_command(
        commands, "tail", "watch.tail_query", "follow the windows of a query", "query"
    )
    sub.add_argument("--final-only", action="store_true", help="omit windows that may change")
    sub.add_argument("--after", default="", metavar="ID", help="continue after this event")
    _add_follow_options(sub)


def _lab(group: Any) -> None:
    sub = _command(group, "list", "lab.list_experiments", "the experiments", acts=False)
    sub.add_argument("planner", nargs="?", default="")
    sub = _command(
        group, "run", "lab.run_experiment", "run an experiment in this process", acts=False
    )
    sub.add_argument("planner")
    sub.add_argument("experiment")
    sub.add_argument("--param", action="append", default=[], metavar="NAME=VALUE")
    sub.add_argument("--values", nargs="+", metavar="X", help="values of the swept parameter")
    sub.add_argument("--series", nargs="+", metavar="NAME", help="series to compare")
    sub.add_argument("--seeds", metavar="N", help="workloads per point")
    sub.add_argument("--out", type=Path, metavar="FILE", help=".csv, .json or .html")


def _shedding(group: Any) -> None:
    about = "the ladder of a cluster: what its rungs drop, and what they keep of each query"
    _cluster_command(group, "show", "shedding.show_ladder", about)
    about = "compute the ladder for the present rates, and arm it"
    sub = _cluster_command(group, "arm", "shedding.arm_ladder", about)
    sub.add_argument("--reason", required=True, help="kept in the audit log")
    about = "disarm the ladder: records wait instead of being dropped"
    sub = _cluster_command(group, "disarm", "shedding.disarm_ladder", about)
    about = "arm it again after so many, up to a week (0: never)"
    sub.add_argument("--minutes", type=int, default=0, metavar="N", help=about)
    sub.add_argument("--reason", required=True, help="kept in the audit log")
    about = "keep at least the position of a rung for some minutes"
    sub = _cluster_command(group, "activate", "shedding.activate_rung", about)
    sub.add_argument("rung", type=int)
    sub.add_argument("--minutes", type=int, default=15, metavar="N", help="up to a day (15)")
    sub.add_argument("--reason", required=True, help="kept in the audit log")
    about = "end the activation of a rung"
    _cluster_command(group, "release", "shedding.release_rung", about, reason=True)
    about = "change the weight and the floor of a query"
    sub = _cluster_command(group, "weights", "shedding.set_weights", about, "name", reason=True)
    sub.add_argument("--weight", type=float, metavar="W", help="value of one of its records")
    sub.add_argument("--floor", type=float, metavar="PART", help="least part that is kept, 0 to 1")
    about = "when which rung dropped records"
    sub = _cluster_command(group, "history", "shedding.list_history", about)
    sub.add_argument("--intervals", action="store_true", help="the intervals of episodes, by rung")
    sub.add_argument("--hours", type=float, default=24.0, metavar="N", help="of the past (24)")
    about = "what the ladder would have dropped in a past time range; changes nothing"
    sub = _cluster_command(group, "drill", "shedding.drill", about)
    time = {"type": datetime.fromisoformat, "metavar": "TIME"}
    sub.add_argument("--from", dest="start", help="UTC, by default a day before the end", **time)
    sub.add_argument("--to", help="UTC, by default now", **time)


def _documents(commands: Any) -> None:
    sub = _cluster_command(commands, "export", "documents.export_cluster", "describe a cluster")
    sub.add_argument("--no-measures", dest="measures", action="store_false",
                     help="omit the measures of queries")  # fmt: skip
    about = "create or update a described cluster; without --apply only print the changes"
    sub = _command(commands, "import", "documents.import_cluster", about)
    sub.add_argument("file", type=Path, help="YAML or JSON; - is stdin")
    sub.add_argument("--apply", action="store_true", help="apply the changes: all of them or none")
    sub.add_argument("--reason", default="", help="kept in the audit log")
    _command(commands, "schema", "documents.print_schema", "the JSON schema of a description",
             acts=False)  # fmt: skip
