"""Composition root of the web process: pages and API by Django, sockets by Channels."""

import os
from importlib import import_module
from multiprocessing import parent_process
from typing import Any

import django

from controlplane import env
from controlplane.runtime.processes import end_with_parent

if parent_process() is not None:
    # One of several workers of a uvicorn: killed, it would leave them with its port.
    end_with_parent()

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
# All web processes of a site count their requests together (controlplane.request_metrics).
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(env.data_dir() / "request-metrics"))
# Django must be set up before anything that touches models is imported.
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.db import database_sync_to_async  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils.module_loading import import_string  # noqa: E402

from controlplane.assets.serving import with_static  # noqa: E402
from controlplane.logins.credentials import has_credentials  # noqa: E402
from controlplane.logins.login_queue import LoginQueue  # noqa: E402
from controlplane.pooled_handler import PooledHandler  # noqa: E402
from controlplane.serving.forwarded import ForwardedHeaders  # noqa: E402
from controlplane.serving.garbage_collection import tune_collector  # noqa: E402
from controlplane.serving.lifespan import lifespan  # noqa: E402
from controlplane.serving.request_limits import LimitedRequests, RequestLimits  # noqa: E402
from controlplane.serving.socket_errors import close_on_loss  # noqa: E402
from controlplane.serving.socket_origin import SocketsOfOwnOrigin  # noqa: E402

# All pages and endpoints now, not with the first request.
import_module(settings.ROOT_URLCONF)
django_application = PooledHandler(settings.WEB_THREADS)
# What hashes a password, or compares a code.
_QUEUED = (
    "login", "login-code", "login-factor", "password-change", "confirm", "second-factor-remove",
)  # fmt: skip
queued_logins = LoginQueue(django_application, frozenset(reverse(name) for name in _QUEUED))


async def is_known(scope: dict[str, Any]) -> bool:
    """Return whether a request has a valid session or token."""
    return await database_sync_to_async(has_credentials)(scope["headers"])


limited_requests = LimitedRequests(
    with_static(queued_logins), RequestLimits(settings.MAX_REQUEST_BYTES), is_known
)
sockets = URLRouter(import_string(settings.WEBSOCKET_URLPATTERNS))

routed = ProtocolTypeRouter(
    {
        "lifespan": lifespan,
        "http": limited_requests,
        "websocket": SocketsOfOwnOrigin(close_on_loss(AuthMiddlewareStack(sockets))),
    }
)
# The outermost: everything behind it reads the client's address, the scheme and the host.
application = ForwardedHeaders(routed, settings.TRUSTED_PROXIES)

tune_collector()
