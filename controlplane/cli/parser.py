"""The command line of `weir`; a command names its function, which is imported on call.

This module imports neither Django nor planners, so `weir --help` is fast.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from controlplane import env
from controlplane.cli.codes import ABOUT, Code, Refused
from controlplane.cli.command_parser import (
    COMMON,
    LOCAL,
    CommandParser,
    add_cluster_command,
    add_command,
    add_common,
    add_filter,
    add_follow_options,
    add_group,
    duration,
)
from controlplane.cli.operations.arguments import add_arguments
from controlplane.cli.operations.catalog import GROUPS, OPERATIONS
from controlplane.cli.query_options import add_query_options
from controlplane.extras import has_lab
from controlplane.moments import read_moment
from controlplane.plans.proposal_states import SAID

_FORMATS: Final = ["json", "ndjson", "csv", "arrow", "parquet"]
_REASONS: Final = ["body", "future", "no_time", "schema", "unreadable"]


@cache
def parser() -> ArgumentParser:
    """Return the parser of all commands; it does not depend on the environment."""
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
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    groups = {name: add_group(commands, name, about) for name, (about, _) in _GROUPS.items()}
    for name, (_, add) in _GROUPS.items():
        add(groups[name])
    for add_single in (_plan, _watch, _tail, _documents):
        add_single(commands)
    groups |= {name: add_group(commands, name, about) for name, about in GROUPS.items()}
    for operation in OPERATIONS:
        group = groups[operation.group] if operation.group else commands
        sub = add_command(group, operation.name, "operations", operation.about)
        sub.set_defaults(operation=operation.command)
        add_arguments(sub, operation)
    return top


def parsed(arguments: Sequence[str]) -> Namespace:
    """Return a call. Raises `Refused`."""
    given = parser().parse_args(arguments)
    is_local = given.run in LOCAL
    if is_local and any(getattr(given, name) for name in COMMON if name != "json"):
        message = f"this command calls no Weir: {LOCAL[given.run]}"
        raise Refused(Code.WRONG, message, advice="omit --as, --url, --token-file and --ca-file")
    if given.url is None:
        given.url = "" if is_local else env.text("WEIR_URL")
    return given


def _clusters(group: Any) -> None:
    add_command(group, "list", "clusters.list_clusters", "all clusters")
    add_cluster_command(group, "show", "clusters.show_cluster", "a cluster and its nodes")
    about = "progress, restarts and incidents of a cluster"
    add_cluster_command(group, "health", "health.show_health", about)
    sub = add_cluster_command(
        group,
        "decide",
        "health.decide_incident",
        "decide about an incident of a cluster",
        reason=True,
    )
    sub.add_argument("incident", type=int, help="its number, as `health` prints it")
    sub.add_argument("choice", help="one of its choices")
    sub = add_cluster_command(group, "skip-batch", "health.skip_batch",
                   "what skipping the stuck batch loses; with --batch, skip it")  # fmt: skip
    sub.add_argument("--batch", type=int, metavar="N", help="skip this batch: its records are lost")
    sub.add_argument("--reason", default="", help="kept in the audit log; needed to skip")
    for verb in ("start", "stop"):
        about = f"{verb} the application"
        sub = add_cluster_command(
            group, verb, "cluster_changes.set_desired_state", about, reason=True
        )
        sub.set_defaults(verb=verb)
    about = "change the number of nodes"
    sub = add_cluster_command(group, "nodes", "cluster_changes.set_nodes", about, reason=True)
    sub.add_argument("nodes", type=int, help="nodes that are removed must have no queries")
    sub = add_cluster_command(
        group, "limit", "cluster_changes.limit", "bound the micro-batches", reason=True
    )
    sub.add_argument("--max-records", type=int, metavar="N", help="records of a batch, at most")
    sub.add_argument("--max-batch-mb", type=int, metavar="N", help="MiB of a batch, at most")
    about = "the split nodes of a cluster"
    add_cluster_command(group, "split-nodes", "admission.list_split_nodes", about)
    about = "declare the capacity of every split node"
    sub = add_cluster_command(
        group, "split-capacity", "admission.declare_split_capacity", about, reason=True
    )
    sub.add_argument("capacity", type=float, help="records/s; 0: measured")
    sub.add_argument("--emulated", action="store_true", help="limit split nodes to it")


def _streams(group: Any) -> None:
    sub = add_cluster_command(group, "list", "streams.list_streams", "the streams of a cluster")
    sub.add_argument("--search", default="", metavar="TEXT", help="in name or title")
    sub.add_argument("--order", default="name", choices=["name", "rate", "queries", "split"])
    sub.add_argument("--reverse", action="store_true", help="the largest first")
    add_filter(sub, "rate>100 has:drops")
    add_cluster_command(group, "show", "streams.show_stream", "one stream and its schema", "stream")
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
    _admission(group)


def _admission(group: Any) -> None:
    """Add the commands about split nodes and rates of streams."""
    about = "show the characteristics of a stream, or declare those that are given"
    sub = add_cluster_command(
        group, "characteristics", "admission.characteristics", about, "stream", reason=True
    )
    _valued(sub, "to declare, as average=60 transition=trend; without a value: not any more")
    about = "let another split node read a stream"
    sub = add_cluster_command(
        group, "redirect", "admission.redirect_stream", about, "stream", reason=True
    )
    sub.add_argument("split", type=int, help="the index of the split node")
    about = "when a stream was redirected, and why"
    add_cluster_command(group, "redirections", "admission.list_redirections", about, "stream")
    about = "the forecast of a stream, and what is left for it"
    add_cluster_command(group, "outlook", "admission.show_outlook", about, "stream")
    about = "what the admission of a stream would do; changes nothing"
    sub = add_cluster_command(group, "what-if", "admission.admit_what_if", about)
    _valued(sub, "its characteristics, as average=60 peak=90 (`characteristics` lists them)")


def _valued(sub: Any, about: str) -> None:
    sub.add_argument("values", nargs="*", metavar="NAME=VALUE", help=about)


def _dead_letters(group: Any) -> None:
    about = "the newest dead letters of a cluster"
    sub = add_cluster_command(group, "list", "dead_letters.list_dead_letters", about)
    sub.add_argument("--limit", type=int, default=50, metavar="N", help="up to 500 (50)")
    _chosen(sub)
    about = "print dead letters with their records, the oldest first"
    sub = add_cluster_command(group, "export", "dead_letters.export_dead_letters", about)
    sub.add_argument("--format", choices=["ndjson", "csv"], default="ndjson")
    _chosen(sub)
    about = "append dead letters again, under the present schemas"
    sub = add_cluster_command(group, "replay", "dead_letters.replay_dead_letters", about)
    sub.add_argument("--zone", default="", help="of times that name none, as Europe/Berlin")
    _chosen(sub, by_id=True)
    about = "delete dead letters"
    sub = add_cluster_command(
        group, "delete", "dead_letters.delete_dead_letters", about, reason=True
    )
    _chosen(sub, by_id=True)


def _chosen(sub: Any, *, by_id: bool = False) -> None:
    if by_id:
        sub.add_argument("ids", nargs="*", metavar="id", help="(default: as the options select)")
        sub.add_argument("--all", action="store_true", help="all of the cluster")
    sub.add_argument("--stream", metavar="NAME")
    sub.add_argument("--why", choices=_REASONS, metavar="REASON", help=", ".join(_REASONS))


def _queries(group: Any) -> None:
    sub = add_cluster_command(group, "list", "queries.list_queries", "the queries of a cluster")
    sub.add_argument("--state", default="live", help="live (default), all, pending, running, ...")
    sub.add_argument("--search", default="", metavar="TEXT", help="in the name")
    sub.add_argument("--node", type=int, metavar="INDEX")
    sub.add_argument("--stream", default="", metavar="NAME")
    add_filter(sub, "state:running node:3 rate>10")
    sub = add_cluster_command(group, "show", "queries.show_query", "one query", "name")
    about = "the most frequent keys of a query, and what each key grouping would give"
    sub = add_cluster_command(group, "keys", "keys.show_keys", about, "name")
    sub = add_cluster_command(
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
    sub = add_cluster_command(
        group, "end", "queries.end_queries", "end live queries: all of them or none", reason=True
    )
    sub.add_argument("names", nargs="+", metavar="name")


def _submit(group: Any) -> None:
    sub = add_cluster_command(
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
    sub = add_command(group, "groupings", "key_groupings.list_key_groupings", about)
    sub.add_argument("grouping", nargs="?", default="", help="show its parameters")
    about = "change the key grouping of a running query"
    command = "key_groupings.set_key_grouping"
    sub = add_cluster_command(group, "key-grouping", command, about, "name", reason=True)
    sub.add_argument("grouping", help="as `weir queries groupings` prints them")
    sub.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of the grouping; may repeat",
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
    sub = add_cluster_command(
        group, "list", "proposals.list_proposals", "the proposals of a cluster, newest first"
    )
    sub.add_argument("--state", default="", help="ready, executing, done, ...")
    add_filter(sub, "state:ready actions>100")
    add_cluster_command(
        group, "queue", "proposals.list_queue", "the proposals that are computed or wait, in order"
    )
    sub = add_command(
        group, "show", "proposals.show_proposal", "a proposal, its seal, and what may be done"
    )
    sub.add_argument("id", type=int)
    sub.add_argument("--actions", type=int, default=20, metavar="N", help="how many actions (20)")
    for verb in SAID:
        sub = add_command(
            group, verb.path, "proposals.apply_verb", f"{verb.about[0].lower()}{verb.about[1:]}"
        )
        sub.set_defaults(verb=verb.path, seal="")
        sub.add_argument("id", type=int)
        if verb.seal:
            sub.add_argument("--seal", required=True, help="as `weir proposals show` prints it")
        if verb.effect:
            sub.add_argument(
                "--applicable", type=int, metavar="N",
                help="refuse if another number of actions can be applied now",
            )  # fmt: skip
        sub.add_argument("--reason", default="", required=verb.reason, help="kept in the audit log")


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


def _lab(group: Any) -> None:
    sub = add_command(group, "list", "lab.list_experiments", "the experiments")
    sub.add_argument("planner", nargs="?", default="")
    sub = add_command(group, "run", "lab.run_experiment", "run an experiment in this process")
    sub.add_argument("planner")
    sub.add_argument("experiment")
    sub.add_argument("--param", action="append", default=[], metavar="NAME=VALUE")
    sub.add_argument("--values", nargs="+", metavar="X", help="values of the swept parameter")
    sub.add_argument("--series", nargs="+", metavar="NAME", help="series to compare")
    sub.add_argument("--seeds", metavar="N", help="workloads per point")
    sub.add_argument("--out", type=Path, metavar="FILE", help=".csv, .json, .svg or .html")
    about = "print a run as a file: its rows, or its figure"
    sub = add_command(group, "export", "lab.export_run", about)
    sub.add_argument("id", type=int)
    sub.add_argument("--format", choices=("csv", "json", "svg"), default="csv")
    sub.add_argument("--measure", default="", metavar="NAME", help="of the figure")


def _shedding(group: Any) -> None:
    about = "the ladder of a cluster: what its rungs drop, and what they keep of each query"
    add_cluster_command(group, "show", "shedding.show_ladder", about)
    about = "compute the ladder for the present rates, and arm it"
    sub = add_cluster_command(group, "arm", "shedding.arm_ladder", about)
    sub.add_argument("--reason", required=True, help="kept in the audit log")
    about = "disarm the ladder: records wait instead of being dropped"
    sub = add_cluster_command(group, "disarm", "shedding.disarm_ladder", about)
    about = "arm it again after so many, up to a week (0: never)"
    sub.add_argument("--minutes", type=int, default=0, metavar="N", help=about)
    sub.add_argument("--reason", required=True, help="kept in the audit log")
    about = "keep at least the position of a rung for some minutes"
    sub = add_cluster_command(group, "activate", "shedding.activate_rung", about)
    sub.add_argument("rung", type=int)
    sub.add_argument("--minutes", type=int, default=15, metavar="N", help="up to a day (15)")
    sub.add_argument("--reason", required=True, help="kept in the audit log")
    about = "end the activation of a rung"
    add_cluster_command(group, "release", "shedding.release_rung", about, reason=True)
    about = "change the weight and the floor of a query"
    sub = add_cluster_command(group, "weights", "shedding.set_weights", about, "name", reason=True)
    sub.add_argument("--weight", type=float, metavar="W", help="value of one of its records")
    sub.add_argument("--floor", type=float, metavar="PART", help="least part that is kept, 0 to 1")
    about = "when which rung dropped records"
    sub = add_cluster_command(group, "history", "shedding.list_history", about)
    sub.add_argument("--intervals", action="store_true", help="the intervals of episodes, by rung")
    sub.add_argument("--hours", type=duration, default=24.0, metavar="N", help="of the past (24)")
    about = "what the ladder would have dropped in a past time range; changes nothing"
    sub = add_cluster_command(group, "drill", "shedding.drill", about)
    time = {"type": read_moment, "metavar": "TIME"}
    sub.add_argument("--from", dest="start", help="UTC, by default a day before the end", **time)
    sub.add_argument("--to", help="UTC, by default now", **time)


def _documents(commands: Any) -> None:
    sub = add_cluster_command(commands, "export", "documents.export_cluster", "describe a cluster")
    sub.add_argument("--no-measures", dest="measures", action="store_false",
                     help="omit the measures of queries")  # fmt: skip
    about = "create or update a described cluster; without --apply only print the changes"
    sub = add_command(commands, "import", "documents.import_cluster", about)
    sub.add_argument("file", type=Path, help="YAML or JSON; - is stdin")
    sub.add_argument("--apply", action="store_true", help="apply the changes: all of them or none")
    sub.add_argument("--reason", default="", help="kept in the audit log")
    about = "the JSON schema of a description"
    add_command(commands, "schema", "documents.print_schema", about)


_GROUPS: Final = {
    "clusters": ("list, show, start and stop clusters", _clusters),
    "streams": ("list and declare streams, change their schemas", _streams),
    "dead-letters": ("list, export and append again records that do not fit", _dead_letters),
    "queries": ("list, show, submit and end queries", _queries),
    "shedding": ("show, arm and drill ladders of drop rules, set weights of queries", _shedding),
    "proposals": ("look at proposals and decide on them", _proposals),
    **({"lab": ("list and run the Lab's experiments", _lab)} if has_lab() else {}),
}
