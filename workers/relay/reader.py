"""Reading of the Redis streams of clusters from a position."""

import json
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from controlplane.models import Cluster
from controlplane.wire.figures import row_from
from controlplane.wire.keys import progress_key, telemetry_key

START = "0-0"
# Entries per read, for short transactions during catch-up.
COUNT = 100


@dataclass
class Cursor:
    """The relayed positions of a cluster's two streams, and Spark's newest batch time (ms)."""

    telemetry: str
    progress: str
    batch_ms: float | None = None


@dataclass
class News:
    """The rows of one read for one cluster; positions are "" if there were none."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    telemetry: str = ""
    progress: str = ""
    batch_ms: float | None = None


async def read_news(client: Redis, cursors: dict[str, Cursor], block_ms: int) -> dict[str, News]:
    """Wait up to block_ms for entries after the cursors and return them by cluster slug."""
    places: dict[str, str] = {}
    for slug, cursor in cursors.items():
        places[telemetry_key(slug)] = cursor.telemetry
        places[progress_key(slug)] = cursor.progress
    result: Any = await client.xread(places, count=COUNT, block=block_ms)  # type: ignore[arg-type]
    pages = {key.decode(): entries for key, entries in result}
    answer = {slug: _news(slug, pages) for slug in cursors}
    return {slug: news for slug, news in answer.items() if news.telemetry or news.progress}


async def rewind_if_lost(client: Redis, cluster: Cluster, cursor: Cursor) -> bool:
    """Reset the cursor if a stream ends before it, as after a loss of Redis; return True then."""
    telemetry = await _last_id(client, telemetry_key(cluster.slug))
    progress = await _last_id(client, progress_key(cluster.slug))
    lost = _order(telemetry) < _order(cursor.telemetry)
    if lost:
        cursor.telemetry = START
    if _order(progress) < _order(cursor.progress):
        cursor.progress = START
    return lost


def _news(slug: str, pages: dict[str, list[Any]]) -> News:
    news = News()
    for position, fields in pages.get(telemetry_key(slug), ()):
        news.telemetry = position.decode()
        news.rows.append(row_from(fields[b"t"]))
    for position, fields in pages.get(progress_key(slug), ()):
        news.progress = position.decode()
        news.batch_ms = _batch_ms(json.loads(fields[b"p"]))
    return news


def _batch_ms(report: dict[str, Any]) -> float | None:
    result: float | None = report.get("durations_ms", {}).get("triggerExecution")
    return result


async def _last_id(client: Redis, key: str) -> str:
    try:
        about: Any = await client.xinfo_stream(key)
    except ResponseError:
        # XINFO rejects missing keys.
        return START
    return str(about["last-generated-id"].decode())


def _order(position: str) -> tuple[int, int]:
    batch, _, sequence = position.partition("-")
    return int(batch), int(sequence or 0)
