"""The WebSocket of a cluster: live samples and events, while its session may view the cluster."""

import asyncio
from collections import Counter, deque
from contextlib import suppress
from typing import Any, Final, cast

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.urls import path

from algorithms.strict_json import BadJson, Bounds, read_bounded
from controlplane.clusters.listing import visible_cluster
from controlplane.errors import NotFound
from controlplane.events.publish import group
from controlplane.logins.changes import access_group
from controlplane.logins.connection_access import (
    ConnectionAccess,
    access_of_session,
    actor_of_session,
)
from controlplane.models import Cluster
from controlplane.telemetry.time_series import since

Message = dict[str, Any]
# The session or the role has ended: the page loads itself again, which asks for a login.
ACCESS_ENDED: Final = 4401
# RFC 6455: data of another type, data that is no JSON, and a breach of the server's limits.
UNSUPPORTED: Final = 1003
INVALID: Final = 1007
TOO_MANY: Final = 1008
_MESSAGE_BOUNDS: Final = Bounds(size=16 * 1024, depth=4, values=100)
_MESSAGE_PERIOD_S: Final = 10.0
# The last moment that a database has (ms since 1970).
_MAX_MS: Final = 253_402_300_799_000
_open_sockets: Counter[int] = Counter()


class ClusterConsumer(AsyncJsonWebsocketConsumer):
    """Consumer of a cluster's samples and events, which also sends missed samples on request.

    It joins the group before it reads missed samples: a sample may be repeated, but is not lost.
    """

    cluster: Cluster | None = None
    access: ConnectionAccess | None = None
    user_id: int | None = None
    checks: asyncio.Task[None] | None = None
    is_counted = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.received: deque[float] = deque(maxlen=settings.MAX_SOCKET_MESSAGES)

    async def connect(self) -> None:
        """Accept viewers of the cluster; others are rejected during the handshake."""
        self.cluster = await self._visible_cluster()
        if self.cluster is None or self.user_id is None:
            await self.close()
            return
        if _open_sockets[self.user_id] >= settings.MAX_SOCKETS_PER_USER:
            await self.close(code=TOO_MANY)
            return
        _open_sockets[self.user_id] += 1
        self.is_counted = True
        await self.channel_layer.group_add(access_group(self.user_id), self.channel_name)
        await self.channel_layer.group_add(group(self.cluster.pk), self.channel_name)
        if not await self._may_continue():
            # The session has ended since it was read, before the group was joined.
            await self.close()
            return
        await self.accept()
        self.checks = asyncio.create_task(self._check_periodically())

    async def disconnect(self, code: int) -> None:
        """Leave the groups."""
        if self.checks is not None:
            self.checks.cancel()
        self._release()
        if self.user_id is not None:
            await self.channel_layer.group_discard(access_group(self.user_id), self.channel_name)
        if self.cluster is not None:
            await self.channel_layer.group_discard(group(self.cluster.pk), self.channel_name)

    async def access_changed(self, message: Message) -> None:
        """Close the socket if its session or its role on the cluster has ended."""
        if not await self._may_continue():
            await self._leave_cluster()

    async def _check_periodically(self) -> None:
        """Check access as after a message, for changes that send none and for expiry."""
        while True:
            await asyncio.sleep(settings.ACCESS_RECHECK_S)
            if not await self._may_continue():
                break
        await self._leave_cluster()

    async def _leave_cluster(self) -> None:
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
        """Read a message; close the socket if it is no JSON, or more arrive than allowed."""
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
        """Reply to {"since": ms} with the samples after that moment; ignore other messages."""
        moment = content.get("since") if isinstance(content, dict) else None
        if isinstance(moment, bool) or not isinstance(moment, int | float):
            return
        if 0 <= moment <= _MAX_MS and self.access is not None:
            missed = await database_sync_to_async(since)(self.access.cluster, int(moment))
            await self.send_json({"type": "samples", "samples": missed})

    async def cluster_sample(self, message: Message) -> None:
        """Forward a sample."""
        if self.access is not None:
            await self.send_json({"type": "sample", "sample": message["sample"]})

    async def cluster_event(self, message: Message) -> None:
        """Forward an event."""
        if self.access is not None:
            await self.send_json({"type": "event", "event": message["event"]})

    @database_sync_to_async
    def _visible_cluster(self) -> Cluster | None:
        actor = actor_of_session(self.scope["session"])
        if actor is None:
            return None
        try:
            cluster = visible_cluster(actor, self.scope["url_route"]["kwargs"]["slug"])
        except NotFound:
            return None
        self.access, self.user_id = access_of_session(self.scope["session"], cluster), actor.user.pk
        return cluster


# The URLs of WebSockets, which controlplane.asgi mounts.
websocket_urlpatterns = [path("ws/clusters/<slug:slug>/", cast("Any", ClusterConsumer.as_asgi()))]
