"""The arguments of `weir streams` and `weir dead-letters`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

Command = Callable[..., Any]
_FORMATS: Final = ["json", "ndjson", "csv", "arrow", "parquet"]
_REASONS: Final = ["body", "future", "no_time", "schema", "unreadable"]


def add_streams(group: Any, command: Command) -> None:
    """Add the commands of streams; `command` adds one to a group."""
    subparser = command(group, "show", "streams.shown", "one stream and its schema")
    _stream(subparser)
    subparser = command(
        group, "infer", "streams.inferred", "propose a schema from a sample, as YAML"
    )
    _sample(subparser)
    about = "register a stream; without --apply only say what its schema would be"
    subparser = command(group, "declare", "streams.declared", about)
    _stream(subparser)
    source = subparser.add_mutually_exclusive_group(required=True)
    source.add_argument("--schema", type=Path, metavar="FILE", help="YAML or JSON; - is stdin")
    source.add_argument("--sample", type=Path, metavar="FILE", help="records to propose one from")
    subparser.add_argument(
        "--format", choices=_FORMATS, help="of the sample (default: by its name)"
    )
    subparser.add_argument("--event-time", metavar="COLUMN", help="another one than is proposed")
    subparser.add_argument("--title", default="")
    subparser.add_argument("--rate", type=float, metavar="R", help="declared, in records/s")
    subparser.add_argument("--apply", action="store_true", help="do it")
    about = "change the schema of a stream; without --apply only say what that would do"
    subparser = command(group, "change", "streams.changed", about)
    _stream(subparser)
    subparser.add_argument(
        "--schema", type=Path, metavar="FILE", help="the whole schema; - is stdin"
    )
    subparser.add_argument("--column", action="append", default=[], metavar="NAME:TYPE",
                     help="add a column, or give it a wider type; may repeat")  # fmt: skip
    subparser.add_argument(
        "--remove", action="append", default=[], metavar="NAME", help="may repeat"
    )
    for name in ("watermark-delay", "max-future", "idle-after"):
        subparser.add_argument(f"--{name}", type=float, metavar="SECONDS")
    subparser.add_argument("--apply", action="store_true", help="do it: all of it or nothing")
    subparser.add_argument("--reason", default="", help="kept in the audit log")


def add_dead_letters(group: Any, command: Command) -> None:
    """Add the commands of dead letters; `command` adds one to a group."""
    subparser = command(
        group, "list", "dead_letters.listed", "the newest dead letters of a cluster"
    )
    _chosen(subparser)
    subparser.add_argument("--limit", type=int, default=50, metavar="N", help="up to 500 (50)")
    about = "print dead letters with their records, the oldest first"
    subparser = command(group, "export", "dead_letters.exported", about)
    _chosen(subparser)
    subparser.add_argument("--format", choices=["ndjson", "csv"], default="ndjson")
    about = "append dead letters again, under the present schemas"
    subparser = command(group, "replay", "dead_letters.replayed", about)
    _chosen(subparser, by_id=True)
    subparser.add_argument("--zone", default="", help="of times that name none, as Europe/Berlin")
    subparser = command(group, "delete", "dead_letters.deleted", "give dead letters up")
    _chosen(subparser, by_id=True)
    subparser.add_argument("--reason", default="", help="kept in the audit log")


def _stream(command: Any) -> None:
    command.add_argument("cluster")
    command.add_argument("stream")


def _sample(command: Any) -> None:
    command.add_argument("file", type=Path, help="JSON, lines of JSON, CSV, Arrow or Parquet")
    command.add_argument("--format", choices=_FORMATS, help="(default: by the file's name)")


def _chosen(command: Any, *, by_id: bool = False) -> None:
    command.add_argument("cluster")
    if by_id:
        command.add_argument(
            "ids", nargs="*", metavar="id", help="(default: all that the filters hold)"
        )
    command.add_argument("--stream", default="", metavar="NAME")
    command.add_argument("--why", default="", choices=["", *_REASONS], metavar="REASON",
                     help=", ".join(_REASONS))  # fmt: skip
