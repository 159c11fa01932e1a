"""Every URL of Weir; the pages are included by name, the control plane does not import them."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.generic import RedirectView

from controlplane.api.health import readyz
from controlplane.api.integrations.metrics import metrics


def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200 without reading anything."""
    return HttpResponse("ok", content_type="text/plain")


handler403 = "dashboard.site.permission_denied"
handler404 = "dashboard.site.page_not_found"
handler500 = "dashboard.site.server_error"
urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    # The pages of Weir limit attempts, record them, and queue what hashes a password.
    path("admin/login/", RedirectView.as_view(pattern_name="login", query_string=True)),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account")),
    path("admin/", admin.site.urls),
    path("", include("controlplane.api.urls")),
    path("", include("dashboard.urls")),
]
