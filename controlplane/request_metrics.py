"""Metrics of requests by route and status, over all web processes.

Where PROMETHEUS_MULTIPROC_DIR is set (controlplane.asgi does), each process maps its counts into a
file there, and any of them returns those of all; the library decides so at its first import.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from django.http import HttpRequest, HttpResponse

_SHARED: Final = os.environ.get("PROMETHEUS_MULTIPROC_DIR", "")
if _SHARED:
    Path(_SHARED).mkdir(parents=True, exist_ok=True)

from prometheus_client import CollectorRegistry, Counter, Histogram  # noqa: E402
from prometheus_client.multiprocess import MultiProcessCollector  # noqa: E402

# Lists take milliseconds, a bulk seconds.
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_OWN: Final = CollectorRegistry()
_COUNT: Final = Counter(
    "weir_http_requests", "Requests answered", ("method", "route", "status"), registry=_OWN
)
_SECONDS: Final = Histogram(
    "weir_http_request_seconds", "Time to answer", ("route",), buckets=_BUCKETS, registry=_OWN
)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def measure_requests(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that counts and times requests."""

    def respond(request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = get_response(request)
        # The pattern, never the path: names in it would make a series each.
        route = request.resolver_match.route if request.resolver_match else "none"
        method = request.method if request.method in _METHODS else "other"
        _COUNT.labels(method, route, str(response.status_code)).inc()
        _SECONDS.labels(route).observe(time.perf_counter() - began)
        return response

    return respond


def collect_requests(registry: CollectorRegistry) -> None:
    """Add what was counted, by all processes, to a registry."""
    if _SHARED:
        # The library has types but for this one.
        MultiProcessCollector(registry, _SHARED)  # type: ignore[no-untyped-call]
        return
    registry.register(_COUNT)
    registry.register(_SECONDS)
