"""The tiles of an attached query and of a webhook."""

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html

from controlplane.models import AttachedQuery
from controlplane.numbers import MISSING, compact, milliseconds
from dashboard.frame.tile import Tile
from dashboard.templatetags.weir import age
from dashboard.thresholds import BAD


def attached_query_tiles(query: AttachedQuery, state: str, behind_ms: float | None) -> list[Tile]:
    """Return the tiles of an attached query; `behind_ms`: of its watermark, None without one."""
    last, batch = query.last, query.last_batch
    since = format_html("since {}", age(query.started_at))
    newest = format_html("newest {}", age(query.last_progress_at))
    return [
        Tile("Status", state, "",
             format_html("ended {}", age(query.ended_at)) if query.ended_at else since),
        Tile("Input", compact(last.get("input")), "rows/s",
             "no batch yet" if batch is None
             else f"{compact(last.get('rows'))} rows in batch {batch}"),
        Tile("Processed", compact(last.get("processed")), "rows/s", "while a batch runs"),
        Tile("Batch", milliseconds(last.get("duration_ms")), "",
             newest if query.last_progress_at else "no batch yet", term="Newest batch"),
        Tile("State", compact(last.get("state_rows")), "rows", _state_note(last)),
        Tile("Watermark", milliseconds(behind_ms), "",
             "none yet" if behind_ms is None else "behind the batch"),
    ]  # fmt: skip


def _state_note(last: Mapping[str, Any]) -> str:
    if last.get("state_bytes") is None:
        return "no state"
    late = last.get("state_dropped")
    return f"{compact(last['state_bytes'])}B memory" + (f", {compact(late)} too late" * bool(late))


def webhook_tiles(row: Mapping[str, Any]) -> list[Tile]:
    """Return the tiles of a webhook; `row`: as `webhooks.webhook_form` returns it."""
    hook, last, waiting = row["hook"], row["last"], row["waiting"]
    return [
        Tile("Status", row["state"], "", _attempts(row)),
        Tile("Newest message", age(last.created_at) if last else MISSING, "",
             f"{last.kind}: {last.state}" if last else "none yet"),
        Tile("Waiting", f"{waiting:,}", "message" if waiting == 1 else "messages",
             "until it is on" if waiting and not hook.active else "to be sent"),
        Tile("Failures in succession", f"{hook.failures:,}", "",
             "attempts without response, or 5xx", grade=BAD if hook.failures else ""),
    ]  # fmt: skip


def _attempts(row: Mapping[str, Any]) -> str:
    if row["state"] == "off":
        return "inactive"
    if row["rests_until"]:
        return format_html("next attempt {}", age(row["rests_until"]))
    if row["hook"].failures:
        return "next attempt now"
    return "messages are sent" if row["last"] else "no message yet"
