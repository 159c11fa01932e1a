"""The relay's loop: read, send to browsers, store; back-off after errors.

One of several relays, the holder of a lease, does so; the others wait.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, close_old_connections
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from controlplane.background import ingestion
from controlplane.background.ingestion import RelayPositions, RelaySuperseded
from controlplane.connections import redis_client
from controlplane.events.publish import group, sample_message
from controlplane.models import Cluster
from controlplane.processes.runtime.beats import beat, now_ms
from controlplane.processes.runtime.leases import Leases, holder_of
from controlplane.processes.runtime.process_kinds import RELAY
from controlplane.telemetry.arrivals import ArrivalInterval
from controlplane.telemetry.samples import Sample
from controlplane.wire.foreign.entries import EntryLocation, decoded, is_other_type, skip
from controlplane.wire.foreign.telemetry import batch_ms_from, row_from
from controlplane.wire.keys import progress_key, telemetry_key
from controlplane.wire.redis_clients import connect_async

START = "0-0"
# Entries per read, for short transactions during catch-up.
COUNT = 100
# Seconds between updates: a thousand streams are a thousand row updates.
EVERY_S = 5.0
logger = logging.getLogger(__name__)

REFRESH_S = 2.0
BLOCK_MS = 1000
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 2.0
# Errors of an outage; all others are of an entry.
_AWAY = (RedisError, OSError, OperationalError, InterfaceError, InternalError)


@dataclass
class RelayCursor:
    """The relayed positions of a cluster's two streams, and Spark's newest batch time (ms).

    `stored`: the position of telemetry in the database.
    """

    telemetry: str
    progress: str
    batch_ms: float | None = None
    stored: str = ""


@dataclass
class News(RelayCursor):
    """The rows of one read for one cluster; positions are "" if there were none.

    `places`: the position of each row.
    """

    telemetry: str = ""
    progress: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)


async def read_news(
    client: Redis, cursors: dict[str, RelayCursor], block_ms: int
) -> dict[str, News]:
    """Wait up to block_ms for entries after the cursors and return them by cluster slug."""
    places: dict[str, str] = {}
    for slug, cursor in cursors.items():
        places[telemetry_key(slug)] = cursor.telemetry
        places[progress_key(slug)] = cursor.progress
    result: Any = await client.xread(places, count=COUNT, block=block_ms)  # type: ignore[arg-type]
    pages = {key.decode(): entries for key, entries in result}
    # In the thread of the database: what is skipped is counted in Redis.
    answer = {slug: await sync_to_async(_news)(slug, pages) for slug in cursors} if pages else {}
    return {slug: news for slug, news in answer.items() if news.telemetry or news.progress}


async def rewind_if_lost(client: Redis, cluster: Cluster, cursor: RelayCursor) -> bool:
    """Reset the cursor if a stream ends before it, as after a loss of Redis; return True then."""
    telemetry = await _last_id(client, cluster.slug, EntryLocation.TELEMETRY)
    progress = await _last_id(client, cluster.slug, EntryLocation.PROGRESS)
    lost = _order(telemetry) < _order(cursor.telemetry)
    if lost:
        cursor.telemetry = START
    if _order(progress) < _order(cursor.progress):
        cursor.progress = START
    return lost


def _news(slug: str, pages: dict[str, list[Any]]) -> News:
    """Return the news of a cluster; entries that cannot be read are skipped and counted."""
    news, client = News(), redis_client()
    for position, fields in pages.get(telemetry_key(slug), ()):
        news.telemetry = position.decode()
        row = decoded(
            client, slug, EntryLocation.TELEMETRY, row_from, fields.get(b"t"), news.telemetry
        )
        if row is not None:
            news.rows.append(row)
            news.places.append(news.telemetry)
    for position, fields in pages.get(progress_key(slug), ()):
        news.progress = position.decode()
        report = fields.get(b"p")
        news.batch_ms = decoded(
            client, slug, EntryLocation.PROGRESS, batch_ms_from, report, news.progress
        )
    return news


async def _last_id(client: Redis, slug: str, place: EntryLocation) -> str:
    key = telemetry_key(slug) if place is EntryLocation.TELEMETRY else progress_key(slug)
    try:
        about: Any = await client.xinfo_stream(key)
    except ResponseError as error:
        # XINFO rejects missing keys. One of another type would stop all readers, and the driver.
        if is_other_type(error):
            await sync_to_async(skip)(redis_client(), slug, place, error)
            await client.delete(key)
        return START
    return str(about["last-generated-id"].decode())


def _order(position: str) -> tuple[int, int]:
    batch, _, sequence = position.partition("-")
    return int(batch), int(sequence or 0)


class RateMeter:
    """The arrivals of a cluster's streams since the last update."""

    def __init__(self) -> None:
        self._records: defaultdict[int, float] = defaultdict(float)
        self._seconds = 0.0

    def add(
        self, intervals: Iterable[ArrivalInterval | None]
    ) -> tuple[dict[int, float], float] | None:
        """Count intervals; return records per stream and seconds when an update is due."""
        for interval in intervals:
            if interval is not None and interval.is_measured:
                for stream, records in interval.arrived.items():
                    self._records[stream] += records
                self._seconds += interval.seconds
        if self._seconds < EVERY_S:
            return None
        due: tuple[dict[int, float], float] = dict(self._records), self._seconds
        self._records.clear()
        self._seconds = 0.0
        return due


class Relay:
    """The relay of all clusters: one task and one database thread."""

    def __init__(self, redis_url: str) -> None:
        self._client: Redis = connect_async(redis_url, block_s=BLOCK_MS / 1000)
        self._leases = Leases(redis_url, RELAY.name, holder_of(settings.DATA_DIR))
        self._clusters: dict[str, Cluster] = {}
        self._cursors: dict[str, RelayCursor] = {}
        self._meters: dict[str, RateMeter] = {}
        self._sent_ms: dict[str, int] = {}
        self._refreshed_at = float("-inf")
        self._beat_at = float("-inf")

    async def run(self, stop: asyncio.Event) -> None:
        """Relay until `stop` is set; wait during outages of Redis or of the database."""
        pause = FIRST_PAUSE_S
        while not stop.is_set():
            try:
                await self.step()
                pause = FIRST_PAUSE_S
            except RelaySuperseded:
                logger.warning("Another relay has stored telemetry; its positions are read again")
                self._forget()
            except _AWAY as away:
                logger.warning("Relaying pauses for %.1f s: %s", pause, away)
                self._refreshed_at = float("-inf")
                await _wait(stop, pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
        await self._client.aclose()
        await sync_to_async(self._leases.leave)()

    async def step(self, block_ms: int = BLOCK_MS) -> int:
        """Refresh the clusters if due, read once and relay; return the number of rows."""
        # First: a database that is away does not make the relay silent.
        await self._beat()
        if RELAY.name not in self._leases.held():
            self._forget()
            await asyncio.sleep(block_ms / 1000)
            return 0
        if time.monotonic() - self._refreshed_at > REFRESH_S:
            await self._refresh()
        if not self._cursors:
            await asyncio.sleep(block_ms / 1000)
            return 0
        news = await read_news(self._client, self._cursors, block_ms)
        for slug, answer in news.items():
            await self._relay(self._clusters[slug], answer)
            # After the storage: unstored rows are read again.
            cursor = self._cursors[slug]
            cursor.telemetry = answer.telemetry or cursor.telemetry
            cursor.progress = answer.progress or cursor.progress
            cursor.batch_ms = answer.batch_ms or cursor.batch_ms
        return sum(len(answer.rows) for answer in news.values())

    async def _beat(self) -> None:
        """Write the heartbeat and renew the lease if that is due."""
        if time.monotonic() - self._beat_at >= RELAY.period_s:
            await sync_to_async(self._leases.step)([RELAY.name])
            await sync_to_async(beat)(redis_client(), RELAY.name, self._leases.holder)
            self._beat_at = time.monotonic()

    def _forget(self) -> None:
        """Forget the positions, which another relay may have changed."""
        self._cursors, self._refreshed_at = {}, float("-inf")

    async def _refresh(self) -> None:
        """Read the clusters, and keep the cursors of known ones."""
        clusters = await sync_to_async(_read_clusters)()
        self._clusters = {cluster.slug: cluster for cluster in clusters}
        self._cursors = {
            slug: self._cursors.get(slug)
            or RelayCursor(
                cluster.telemetry_position,
                cluster.progress_position,
                stored=cluster.telemetry_position,
            )
            for slug, cluster in self._clusters.items()
        }
        for slug, cluster in self._clusters.items():
            if await rewind_if_lost(self._client, cluster, self._cursors[slug]):
                logger.warning("The telemetry of %s starts again", slug)
        self._refreshed_at = time.monotonic()

    async def _relay(self, cluster: Cluster, news: News) -> None:
        """Relay the rows of a cluster; those that cannot be stored are skipped and counted."""
        batch_ms = news.batch_ms or self._cursors[cluster.slug].batch_ms
        try:
            stored = self._cursors[cluster.slug].stored
            end = RelayPositions(news.telemetry, news.progress, stored)
            await self._ingest(cluster, news.rows, batch_ms, end)
        except (*_AWAY, RelaySuperseded):
            raise
        except Exception as error:  # noqa: BLE001 - one of the rows is at fault
            if len(news.rows) <= 1:
                place, entry = EntryLocation.TELEMETRY, news.telemetry
                await sync_to_async(skip)(redis_client(), cluster.slug, place, error, entry)
                return
            for row, position in zip(news.rows, news.places, strict=True):
                part = News(position, rows=[row], places=[position], batch_ms=batch_ms)
                await self._relay(cluster, part)

    async def _ingest(
        self,
        cluster: Cluster,
        rows: list[dict[str, Any]],
        batch_ms: float | None,
        end: RelayPositions,
    ) -> None:
        measured = await sync_to_async(ingestion.measure)(cluster, rows, batch_ms)
        await self._send(cluster, measured.samples)
        await sync_to_async(ingestion.store)(cluster, rows, measured, end)
        self._cursors[cluster.slug].stored = end.telemetry or end.stored
        due = self._meters.setdefault(cluster.slug, RateMeter()).add(measured.intervals)
        if due is not None:
            await sync_to_async(ingestion.update_rates)(cluster, *due)

    async def _send(self, cluster: Cluster, samples: list[Sample]) -> None:
        """Send new samples; browsers request missed ones."""
        layer: Any = get_channel_layer()
        for sample in samples:
            if sample["t"] <= self._sent_ms.get(cluster.slug, 0):
                continue
            try:
                await layer.group_send(group(cluster.pk), sample_message(sample))
            except ResponseError as error:
                await sync_to_async(skip)(
                    redis_client(), cluster.slug, EntryLocation.BROWSERS, error
                )
            # A row of the far future must not keep the ones after it from the browsers.
            self._sent_ms[cluster.slug] = min(sample["t"], now_ms())


def _read_clusters() -> list[Cluster]:
    # After a restart of the database the connection is dead.
    close_old_connections()
    return list(Cluster.objects.all())


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
