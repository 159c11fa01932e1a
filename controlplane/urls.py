"""Every URL of Weir; the pages are included by name, the control plane does not import them."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from controlplane.api import api
from controlplane.api.integrations.metrics import metrics


def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200 without reading anything."""
    return HttpResponse("ok", content_type="text/plain")


handler500 = "dashboard.site.server_error"
urlpatterns = [
    path("healthz", healthz),
    path("metrics", metrics),
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("", include("dashboard.urls")),
]
