"""The WebSocket of a cluster: live samples and events."""

from typing import Any, cast

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.contrib.auth.models import AnonymousUser
from django.urls import path

from controlplane.access.roles import Actor
from controlplane.clusters.listing import cluster_by_slug
from controlplane.errors import NotFound
from controlplane.events.publish import group
from controlplane.models import Cluster
from controlplane.telemetry.time_series import since

Message = dict[str, Any]


class ClusterConsumer(AsyncJsonWebsocketConsumer):
    """Consumer of a cluster's samples and events, which also sends missed samples on request.

    It joins the group before it reads missed samples: a sample may be repeated, but is not lost.
    """

    cluster: Cluster | None = None

    async def connect(self) -> None:
        """Accept viewers of the cluster; others are rejected during the handshake."""
        self.cluster = await self._visible_cluster()
        if self.cluster is None:
            await self.close()
            return
        await self.channel_layer.group_add(group(self.cluster.pk), self.channel_name)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        """Leave the group."""
        if self.cluster is not None:
            await self.channel_layer.group_discard(group(self.cluster.pk), self.channel_name)

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """Reply to {"since": ms} with the samples after that moment; ignore other messages."""
        moment = content.get("since") if isinstance(content, dict) else None
        if isinstance(moment, int | float) and self.cluster is not None:
            missed = await database_sync_to_async(since)(self.cluster, int(moment))
            await self.send_json({"type": "samples", "samples": missed})

    async def cluster_sample(self, message: Message) -> None:
        """Forward a sample."""
        await self.send_json({"type": "sample", "sample": message["sample"]})

    async def cluster_event(self, message: Message) -> None:
        """Forward an event."""
        await self.send_json({"type": "event", "event": message["event"]})

    @database_sync_to_async
    def _visible_cluster(self) -> Cluster | None:
        actor = Actor(self.scope.get("user") or AnonymousUser())
        try:
            cluster = cluster_by_slug(self.scope["url_route"]["kwargs"]["slug"])
        except NotFound:
            return None
        return cluster if actor.on(cluster).is_viewer else None


# The URLs of WebSockets, which controlplane.asgi mounts.
websocket_urlpatterns = [path("ws/clusters/<slug:slug>/", cast("Any", ClusterConsumer.as_asgi()))]
