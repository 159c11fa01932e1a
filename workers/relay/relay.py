"""The relay's loop: read, send to browsers, store; back-off after errors."""

import asyncio
import logging
import time
from typing import Any

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.db import DatabaseError, InterfaceError, close_old_connections
from redis.asyncio import Redis
from redis.exceptions import RedisError

from controlplane.background import ingestion
from controlplane.background.ingestion import Positions
from controlplane.events.publish import group
from controlplane.models import Cluster
from controlplane.runtime.beats import EXPIRES_S, beat_key
from controlplane.telemetry.samples import Sample
from workers.relay.rates import RateMeter
from workers.relay.reader import Cursor, News, read_news, rewind_if_lost

logger = logging.getLogger(__name__)

REFRESH_S = 2.0
BLOCK_MS = 1000
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0


class Relay:
    """The relay of all clusters: one task and one database thread."""

    def __init__(self, redis_url: str) -> None:
        self._client: Redis = Redis.from_url(
            redis_url, socket_connect_timeout=2, socket_timeout=BLOCK_MS / 1000 + 5
        )
        self._clusters: dict[str, Cluster] = {}
        self._cursors: dict[str, Cursor] = {}
        self._meters: dict[str, RateMeter] = {}
        self._sent_ms: dict[str, int] = {}
        self._refreshed_at = float("-inf")

    async def run(self, stop: asyncio.Event) -> None:
        """Relay until `stop` is set; wait during outages of Redis or of the database."""
        pause = FIRST_PAUSE_S
        while not stop.is_set():
            try:
                await self.step()
                pause = FIRST_PAUSE_S
            except (RedisError, OSError, DatabaseError, InterfaceError) as away:
                logger.warning("Relaying pauses for %.1f s: %s", pause, away)
                self._refreshed_at = float("-inf")
                await _wait(stop, pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
        await self._client.aclose()

    async def step(self, block_ms: int = BLOCK_MS) -> int:
        """Refresh the clusters if due, read once and relay; return the number of rows."""
        if time.monotonic() - self._refreshed_at > REFRESH_S:
            await self._refresh()
        if not self._cursors:
            await asyncio.sleep(block_ms / 1000)
            return 0
        news = await read_news(self._client, self._cursors, block_ms)
        for slug, answer in news.items():
            await self._relay(slug, answer)
        return sum(len(answer.rows) for answer in news.values())

    async def _refresh(self) -> None:
        """Read the clusters, keep the cursors of known ones, and write the heartbeat."""
        clusters = await sync_to_async(_read_clusters)()
        self._clusters = {cluster.slug: cluster for cluster in clusters}
        self._cursors = {
            slug: self._cursors.get(slug)
            or Cursor(cluster.telemetry_position, cluster.progress_position)
            for slug, cluster in self._clusters.items()
        }
        for slug, cluster in self._clusters.items():
            if await rewind_if_lost(self._client, cluster, self._cursors[slug]):
                logger.warning("The telemetry of %s starts again", slug)
        await self._client.set(beat_key("relay"), time.time_ns() // 1_000_000, ex=EXPIRES_S)
        self._refreshed_at = time.monotonic()

    async def _relay(self, slug: str, news: News) -> None:
        cluster, cursor = self._clusters[slug], self._cursors[slug]
        batch_ms = news.batch_ms or cursor.batch_ms
        samples = await sync_to_async(ingestion.measure)(cluster, news.rows, batch_ms)
        await self._send(cluster, samples)
        positions = Positions(news.telemetry, news.progress)
        await sync_to_async(ingestion.store)(cluster, news.rows, samples, positions)
        # After the storage: unstored rows are read again.
        cursor.telemetry = news.telemetry or cursor.telemetry
        cursor.progress = news.progress or cursor.progress
        cursor.batch_ms = batch_ms
        due = self._meters.setdefault(slug, RateMeter()).add(news.rows)
        if due is not None:
            await sync_to_async(ingestion.update_rates)(cluster.pk, *due)

    async def _send(self, cluster: Cluster, samples: list[Sample]) -> None:
        """Send new samples; browsers request missed ones."""
        layer: Any = get_channel_layer()
        for sample in samples:
            if sample["t"] <= self._sent_ms.get(cluster.slug, 0):
                continue
            message = {"type": "cluster.sample", "sample": sample}
            await layer.group_send(group(cluster.pk), message)
            self._sent_ms[cluster.slug] = sample["t"]


def _read_clusters() -> list[Cluster]:
    # After a restart of the database the connection is dead.
    close_old_connections()
    return list(Cluster.objects.all())


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
