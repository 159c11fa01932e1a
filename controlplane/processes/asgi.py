"""Composition root of the web process: pages and API by Django, sockets by Channels."""

import os
from importlib import import_module
from multiprocessing import parent_process

import django

from controlplane.child_processes.start import end_with_parent
from controlplane.installation import env

if parent_process() is not None:
    # One of several workers of a uvicorn: killed, it would leave them with its port.
    end_with_parent()

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
# All web processes of a site count their requests together (serving.request_metrics).
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(env.data_dir() / "request-metrics"))
# Django must be set up before anything that touches models is imported.
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils.module_loading import import_string  # noqa: E402

from controlplane.access.logins.credentials import user_of  # noqa: E402
from controlplane.installation.assets.serving import with_static  # noqa: E402
from controlplane.processes.runtime import request_bounds as bounds  # noqa: E402
from controlplane.processes.runtime.request_bounds import RequestLimits  # noqa: E402
from controlplane.processes.serving import request_metrics  # noqa: E402
from controlplane.processes.serving.forwarded import ForwardedHeaders  # noqa: E402
from controlplane.processes.serving.garbage_collection import tune_collector  # noqa: E402
from controlplane.processes.serving.lifespan import lifespan  # noqa: E402
from controlplane.processes.serving.owners import Owners  # noqa: E402
from controlplane.processes.serving.pooled_handler import PooledHandler  # noqa: E402
from controlplane.processes.serving.request_limits import LimitedRequests  # noqa: E402
from controlplane.processes.serving.sockets import SocketsOfOwnOrigin, close_on_loss  # noqa: E402

request_metrics.prepare_files()
# All pages and endpoints now, not with the first request.
import_module(settings.ROOT_URLCONF)
# What hashes a password, or compares a code.
_LOGINS = (
    "login", "login-code", "login-factor", "password-change", "confirm", "second-factor-remove",
)  # fmt: skip
LANES = {
    **{(method, "/healthz"): bounds.HEALTH for method in ("GET", "HEAD")},
    **{(method, "/readyz"): bounds.READINESS for method in ("GET", "HEAD")},
    **{("POST", reverse(name)): bounds.LOGINS for name in _LOGINS},
    **{("GET", reverse(name)): bounds.SIGN_ON for name in ("sso", "sso-callback")},
}
django_application = PooledHandler(settings.WEB_THREADS, LANES)
limited_requests = LimitedRequests(
    with_static(django_application),
    RequestLimits(settings.MAX_REQUEST_BYTES),
    Owners(user_of).owner_of,
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
