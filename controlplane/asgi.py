"""Composition root of the web process: pages and API by Django, sockets by Channels."""

import os

from django.core.asgi import get_asgi_application

from controlplane import env

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
# All web processes of a site count their requests together (controlplane.measuring).
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(env.data_dir() / "request-metrics"))
# Django must be set up before anything that touches models is imported.
django_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402
from django.utils.module_loading import import_string  # noqa: E402

from controlplane.staticfiles import with_static  # noqa: E402

sockets = URLRouter(import_string(settings.WEBSOCKET_URLPATTERNS))

application = ProtocolTypeRouter(
    {
        "http": with_static(django_application),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(sockets)),
    }
)
