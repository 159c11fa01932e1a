"""The arguments of `weir streams` and `weir dead-letters`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

Command = Callable[..., Any]
_FORMATS: Final = ["json", "ndjson", "csv", "arrow", "parquet"]
_REASONS: Final = ["body", "future", "no_time", "schema", "unreadable"]


def add_streams(group: Any, command: Command) -> None:
    """Add the commands of streams; `command` adds one to a group."""
    sub = command(group, "show", "streams.shown", "one stream and its schema")
    _stream(sub)
    sub = command(group, "infer", "streams.inferred", "propose a schema from a sample, as YAML")
    _sample(sub)
    about = "register a stream; without --apply only print its schema"
    sub = command(group, "declare", "streams.declared", about)
    _stream(sub)
    source = sub.add_mutually_exclusive_group(required=True)
    source.add_argument("--schema", type=Path, metavar="FILE", help="YAML or JSON; - is stdin")
    source.add_argument("--sample", type=Path, metavar="FILE", help="records to propose one from")
    sub.add_argument("--format", choices=_FORMATS, help="of the sample (default: by its name)")
    sub.add_argument("--event-time", metavar="COLUMN", help="another one than is proposed")
    sub.add_argument("--title", default="")
    sub.add_argument("--rate", type=float, metavar="R", help="declared, in records/s")
    sub.add_argument("--apply", action="store_true", help="do it")
    about = "change the schema of a stream; without --apply only print the effect"
    sub = command(group, "change", "streams.changed", about)
    _stream(sub)
    sub.add_argument("--schema", type=Path, metavar="FILE", help="the whole schema; - is stdin")
    sub.add_argument("--column", action="append", default=[], metavar="NAME:TYPE",
                     help="add a column, or give it a wider type; may repeat")  # fmt: skip
    sub.add_argument("--remove", action="append", default=[], metavar="NAME", help="may repeat")
    for name in ("watermark-delay", "max-future", "idle-after"):
        sub.add_argument(f"--{name}", type=float, metavar="SECONDS")
    sub.add_argument("--apply", action="store_true", help="do it: all of it or nothing")
    sub.add_argument("--reason", default="", help="kept in the audit log")


def add_dead_letters(group: Any, command: Command) -> None:
    """Add the commands of dead letters; `command` adds one to a group."""
    sub = command(group, "list", "dead_letters.listed", "the newest dead letters of a cluster")
    _chosen(sub)
    sub.add_argument("--limit", type=int, default=50, metavar="N", help="up to 500 (50)")
    about = "print dead letters with their records, the oldest first"
    sub = command(group, "export", "dead_letters.exported", about)
    _chosen(sub)
    sub.add_argument("--format", choices=["ndjson", "csv"], default="ndjson")
    about = "append dead letters again, under the present schemas"
    sub = command(group, "replay", "dead_letters.replayed", about)
    _chosen(sub, by_id=True)
    sub.add_argument("--zone", default="", help="of times that name none, as Europe/Berlin")
    sub = command(group, "delete", "dead_letters.deleted", "delete dead letters")
    _chosen(sub, by_id=True)
    sub.add_argument("--reason", default="", help="kept in the audit log")


def _stream(sub: Any) -> None:
    sub.add_argument("cluster")
    sub.add_argument("stream")


def _sample(sub: Any) -> None:
    sub.add_argument("file", type=Path, help="JSON, lines of JSON, CSV, Arrow or Parquet")
    sub.add_argument("--format", choices=_FORMATS, help="(default: by the file's name)")


def _chosen(sub: Any, *, by_id: bool = False) -> None:
    sub.add_argument("cluster")
    if by_id:
        sub.add_argument(
            "ids", nargs="*", metavar="id", help="(default: all that the filters hold)"
        )
    sub.add_argument("--stream", default="", metavar="NAME")
    sub.add_argument("--why", default="", choices=["", *_REASONS], metavar="REASON",
                     help=", ".join(_REASONS))  # fmt: skip
