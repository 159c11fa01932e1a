"""The authorization of a long-lived connection, which is checked again while it is open."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.db import OperationalError
from django.http import HttpRequest
from django.utils import timezone
from redis.exceptions import RedisError

from controlplane.access.client_address import client_address, is_local
from controlplane.access.logins.changes import access_group
from controlplane.access.logins.login_sessions import KEY, session_of
from controlplane.access.roles import Actor
from controlplane.models import ApiToken, Cluster

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectionAccess:
    """What a connection is authorized by: a login session, or a token.

    `cluster`: the cluster that the connection shows, None for all visible ones.
    """

    cluster: Cluster | None
    login: str = ""
    token: int | None = None
    address: str | None = None
    is_local: bool = False

    def actor(self) -> Actor | None:
        """Return the actor of the session or token as it is now, None if it has ended."""
        if self.token is None:
            session = session_of(self.login)
            if session is None:
                return None
            return Actor(session.user, self.address, is_local=self.is_local)
        live = ApiToken.objects.select_related("user").filter(expires_at__gt=timezone.now())
        row = live.filter(pk=self.token).first()
        if row is None:
            return None
        return Actor(
            row.user, self.address, ceiling=row.role, only=row.cluster_id, token=row.pk,
            is_local=self.is_local,
        )  # fmt: skip

    def viewer(self) -> Actor | None:
        """Return the actor who may view the cluster, or any cluster, now; None without access.

        Roles, the session or the token, and the cluster are read again.
        """
        actor = self.actor()
        if actor is None:
            return None
        if self.cluster is None:
            return actor if actor.is_member else None
        exists = Cluster.objects.filter(pk=self.cluster.pk).exists()
        return actor if exists and actor.on(self.cluster).is_viewer else None

    def user_id(self) -> int | None:
        """Return the id of the viewer; None if access has ended."""
        viewer = self.viewer()
        return None if viewer is None else viewer.user.pk

    def holds(self) -> bool:
        """Return True if the connection may go on, also if the database does not answer now."""
        try:
            return self.viewer() is not None
        except OperationalError as error:
            logger.warning("Access of a connection was not checked: %s", error)
            return True


def access_of_session(session: SessionBase, cluster: Cluster | None = None) -> ConnectionAccess:
    """Return the access of a socket by its session, to all visible clusters without one."""
    return ConnectionAccess(cluster, login=str(session.get(KEY, "")))


def access_of_request(request: HttpRequest, cluster: Cluster) -> ConnectionAccess:
    """Return the access of a request that was authenticated by the API."""
    place: dict[str, Any] = {"address": client_address(request), "is_local": is_local(request)}
    row = getattr(request, "auth", None)
    if isinstance(row, ApiToken):
        return ConnectionAccess(cluster, token=row.pk, **place)
    return ConnectionAccess(cluster, login=str(request.session.get(KEY, "")), **place)


async def while_authorized(
    access: ConnectionAccess, lines: AsyncGenerator[str, None]
) -> AsyncIterator[str]:
    """Yield the lines of a stream until they end, or until its access is lost."""
    async with AccessWatch(access) as watch:
        following: asyncio.Task[str] | None = None
        try:
            while True:
                following = asyncio.create_task(_next(lines))
                await asyncio.wait({following, watch.lost}, return_when=asyncio.FIRST_COMPLETED)
                if watch.lost.done():
                    return
                yield await following
        except StopAsyncIteration:
            return
        finally:
            if following is not None and not following.done():
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following
            await lines.aclose()


async def _next(lines: AsyncGenerator[str, None]) -> str:
    return await anext(lines)


class AccessWatch:
    """Completes `lost` when a connection loses its access: within a second, or periodically."""

    def __init__(self, access: ConnectionAccess) -> None:
        self._access = access
        self._group = self._channel = ""
        self.lost: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        """Join the group of the user and begin to watch."""
        user_id = await database_sync_to_async(self._access.user_id)()
        layer = get_channel_layer()
        if user_id is not None and layer is not None:
            try:
                self._channel = await layer.new_channel()
                await layer.group_add(access_group(user_id), self._channel)
                self._group = access_group(user_id)
            except (RedisError, OSError):
                # Checked periodically only, until Redis returns and the client reconnects.
                self._group = ""
        self.lost = asyncio.create_task(self._watch(is_lost=user_id is None))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop watching and leave the group."""
        self.lost.cancel()
        layer = get_channel_layer()
        if self._group and layer is not None:
            try:
                await layer.group_discard(self._group, self._channel)
            except (RedisError, OSError):
                logger.info("A connection ended without Redis: its membership expires")

    async def _watch(self, *, is_lost: bool) -> None:
        while not is_lost:
            await self._change_or_period()
            is_lost = not await database_sync_to_async(self._access.holds)()

    async def _change_or_period(self) -> None:
        layer = get_channel_layer()
        period_s = settings.ACCESS_RECHECK_S
        if not self._group or layer is None:
            await asyncio.sleep(period_s)
            return
        try:
            await asyncio.wait_for(layer.receive(self._channel), period_s)
        except TimeoutError:
            return
        except (RedisError, OSError):
            await asyncio.sleep(min(1.0, period_s))
