"""WebSockets of pages: live samples and events, while their session may view the clusters."""

import asyncio
from abc import abstractmethod
from collections import Counter, deque
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.db import OperationalError
from django.urls import path
from django.utils import timezone

from algorithms.strict_json import BadJson, JsonLimits, read_bounded
from controlplane.access import audit
from controlplane.access.logins.changes import access_group
from controlplane.access.logins.connection_access import ConnectionAccess, access_of_session
from controlplane.clusters.listing import newest_samples, visible_cluster
from controlplane.connections import redis_client
from controlplane.errors import NotFound
from controlplane.events.publish import FLEET, group
from controlplane.models import Cluster
from controlplane.telemetry.time_series import since
from controlplane.wire.foreign.entries import SITE, EntryLocation, skip

Message = dict[str, Any]
# The session or the role has ended: the page loads itself again, which asks for a login.
ACCESS_ENDED: Final = 4401
# RFC 6455: data of another type, data that is not JSON, and a breach of the server's limits.
UNSUPPORTED: Final = 1003
INVALID: Final = 1007
TOO_MANY: Final = 1008
_MESSAGE_BOUNDS: Final = JsonLimits(size=16 * 1024, depth=4, values=100)
_MESSAGE_PERIOD_S: Final = 10.0
# The last moment that a database has (ms since 1970).
_MAX_MS: Final = 253_402_300_799_000
# The fleet's page draws at most once per second.
_FLEET_PERIOD_S: Final = 1.0
_open_sockets: Counter[int] = Counter()


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """Consumer of a channel-layer group for the browsers that may read it.

    It joins the group before it reads missed samples: a sample may be repeated, but is not lost.
    """

    access: ConnectionAccess | None = None
    user_id: int | None = None
    checks: asyncio.Task[None] | None = None
    is_counted = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.received: deque[float] = deque(maxlen=settings.MAX_SOCKET_MESSAGES)

    @abstractmethod
    def authorize(self) -> str:
        """Set `access` and `user_id`, and return the group to join; "" without access."""

    async def connect(self) -> None:
        """Accept authorized users; others are rejected during the handshake."""
        self.group = await database_sync_to_async(self.authorize)()
        if not self.group or self.user_id is None:
            await database_sync_to_async(self._record_refusal)()
            await self.close()
            return
        if _open_sockets[self.user_id] >= settings.MAX_SOCKETS_PER_USER:
            await self.close(code=TOO_MANY)
            return
        _open_sockets[self.user_id] += 1
        self.is_counted = True
        await self.channel_layer.group_add(access_group(self.user_id), self.channel_name)
        await self.channel_layer.group_add(self.group, self.channel_name)
        if not await self._may_continue():
            # The session has ended since it was read, before the group was joined.
            await self.close()
            return
        await self.accept()
        self.checks = asyncio.create_task(self._check_periodically())

    def _record_refusal(self) -> None:
        actor = access_of_session(self.scope["session"]).actor()
        if actor is not None:
            client = self.scope.get("client")
            actor = replace(actor, address=client[0] if client else None)
            audit.record_refusal(actor, f"WebSocket {self.scope['path']}")

    async def dispatch(self, message: Message) -> None:
        """Handle a message; one of the channel layer without its fields is skipped."""
        try:
            await super().dispatch(message)
        except (KeyError, TypeError, ValueError) as error:
            if message["type"].startswith("websocket."):
                raise
            skip(redis_client(), SITE, EntryLocation.BROWSERS, error, object())

    async def disconnect(self, code: int) -> None:
        """Leave the groups."""
        if self.checks is not None:
            self.checks.cancel()
        self._release()
        if self.user_id is not None:
            await self.channel_layer.group_discard(access_group(self.user_id), self.channel_name)
        if self.group:
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def access_changed(self, message: Message) -> None:
        """Close the socket if its session or its role has ended."""
        if not await self._may_continue():
            await self._end_access()

    async def _check_periodically(self) -> None:
        """Check access as after a message, for changes that send none and for expiry."""
        while True:
            await asyncio.sleep(settings.ACCESS_RECHECK_S)
            if not await self._may_continue():
                break
        await self._end_access()

    async def _end_access(self) -> None:
        """Close the socket, and forward nothing that arrives meanwhile."""
        if self.access is None:
            return
        self.access = None
        with suppress(RuntimeError, OSError):
            # The client may have left meanwhile.
            await self.close(code=ACCESS_ENDED)

    async def _may_continue(self) -> bool:
        access = self.access
        return access is not None and await database_sync_to_async(access.holds)()

    def _release(self) -> None:
        if self.is_counted and self.user_id is not None:
            self.is_counted = False
            _open_sockets[self.user_id] -= 1
            if not _open_sockets[self.user_id]:
                del _open_sockets[self.user_id]

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any
    ) -> None:
        """Read a message; close the socket if it is not JSON, or more arrive than allowed."""
        now = asyncio.get_running_loop().time()
        if len(self.received) == self.received.maxlen and (
            now - self.received[0] < _MESSAGE_PERIOD_S
        ):
            await self.close(code=TOO_MANY)
            return
        self.received.append(now)
        if text_data is None:
            await self.close(code=UNSUPPORTED)
            return
        try:
            content = read_bounded(text_data.encode(), _MESSAGE_BOUNDS)
        except (BadJson, UnicodeEncodeError):
            await self.close(code=INVALID)
            return
        await self.receive_json(content, **kwargs)

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """Reply to {"since": ms} with later samples and the present in ms; ignore others."""
        moment = content.get("since") if isinstance(content, dict) else None
        if isinstance(moment, bool) or not isinstance(moment, int | float):
            return
        if 0 <= moment <= _MAX_MS and self.access is not None:
            missed = await database_sync_to_async(self.missed)(int(moment))
            now = round(1000 * timezone.now().timestamp())
            await self.send_json({"type": "samples", "samples": missed, "now": now})

    @abstractmethod
    def missed(self, moment: int) -> list[Message]:
        """Return the samples after a moment (ms since the epoch)."""


class ClusterConsumer(LiveConsumer):
    """Consumer of a cluster's samples and events."""

    cluster: Cluster | None = None

    def authorize(self) -> str:
        """Authorize the viewers of the cluster."""
        session = self.scope["session"]
        actor = access_of_session(session).actor()
        if actor is None:
            return ""
        try:
            self.cluster = visible_cluster(actor, self.scope["url_route"]["kwargs"]["slug"])
        except NotFound:
            return ""
        self.access, self.user_id = access_of_session(session, self.cluster), actor.user.pk
        return group(self.cluster.pk)

    def missed(self, moment: int) -> list[Message]:
        """Return the samples of the cluster after a moment (ms since the epoch)."""
        return [] if self.cluster is None else since(self.cluster, moment)

    async def cluster_sample(self, message: Message) -> None:
        """Forward a sample, which is JSON already (`publish.sample_message`)."""
        if self.access is not None:
            await self.send(text_data=message["text"])

    async def cluster_event(self, message: Message) -> None:
        """Forward an event."""
        if self.access is not None:
            await self.send_json({"type": "event", "event": message["event"]})


class FleetConsumer(LiveConsumer):
    """Consumer of the events of all visible clusters, and of the times of their newest samples.

    The times are sent together, at most once per second.
    """

    sending: asyncio.Task[None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.slugs: dict[int, str] = {}
        self.hidden: set[int] = set()
        self.waiting: dict[int, int] = {}

    def authorize(self) -> str:
        """Authorize the viewers of any cluster."""
        access = access_of_session(self.scope["session"])
        actor = access.viewer()
        if actor is None:
            return ""
        self.access, self.user_id = access, actor.user.pk
        return FLEET

    async def _may_continue(self) -> bool:
        if not await super()._may_continue():
            return False
        with suppress(OperationalError):
            # If the database does not answer, the clusters of the last check count.
            await database_sync_to_async(self.missed)(0)
        return True

    def missed(self, moment: int) -> list[Message]:
        """Return the times of newest samples after a moment (ms); read the visible clusters."""
        actor = None if self.access is None else self.access.viewer()
        newest = [] if actor is None else newest_samples(actor.clusters)
        self.slugs, self.hidden = {row.pk: row.slug for row in newest}, set()
        return [
            {"cluster": row.slug, "t": row.t}
            for row in newest
            if row.t is not None and row.t > moment
        ]

    async def disconnect(self, code: int) -> None:
        """Leave the groups, and send nothing more."""
        if self.sending is not None:
            self.sending.cancel()
        await super().disconnect(code)

    async def fleet_sample(self, message: Message) -> None:
        """Send the time of a sample with those of the next second."""
        if self.access is None or message["cluster"] not in self.slugs:
            return
        self.waiting[message["cluster"]] = message["t"]
        if self.sending is None or self.sending.done():
            self.sending = asyncio.create_task(self._send_waiting())

    async def _send_waiting(self) -> None:
        while self.waiting:
            times, self.waiting = self.waiting, {}
            samples = [
                {"cluster": self.slugs[pk], "t": t} for pk, t in times.items() if pk in self.slugs
            ]
            if self.access is not None and samples:
                with suppress(RuntimeError, OSError):
                    await self.send_json({"type": "samples", "samples": samples})
            await asyncio.sleep(_FLEET_PERIOD_S)

    async def fleet_event(self, message: Message) -> None:
        """Forward an event of a visible cluster with the cluster's slug."""
        if self.access is None:
            return
        pk = message["cluster"]
        if pk not in self.slugs and pk not in self.hidden:
            # It may have been created meanwhile.
            await database_sync_to_async(self.missed)(0)
        slug = self.slugs.get(pk)
        if slug is None:
            self.hidden.add(pk)
        if slug is not None and self.access is not None:
            await self.send_json({"type": "event", "event": {**message["event"], "cluster": slug}})


# The URLs of WebSockets, which controlplane.processes.asgi mounts.
websocket_urlpatterns = [
    path("ws/clusters/<slug:slug>/", cast("Any", ClusterConsumer.as_asgi())),
    path("ws/fleet/", cast("Any", FleetConsumer.as_asgi())),
]
