"""WebSocket URLs of the dashboard, which controlplane.asgi mounts."""

from typing import Any, cast

from django.urls import path

from dashboard.consumers import ClusterConsumer

websocket_urlpatterns = [
    path("ws/clusters/<slug:slug>/", cast("Any", ClusterConsumer.as_asgi())),
]
