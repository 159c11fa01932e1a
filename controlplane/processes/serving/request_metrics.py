"""Metrics of requests by route and status, over all web processes.

Where PROMETHEUS_MULTIPROC_DIR is set (`processes.asgi` does), each process maps its counts into a
file there, and any of them returns those of all; the library decides so at its first import.
"""

import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
from django.http import HttpRequest, HttpResponse

_SHARED: Final = os.environ.get("PROMETHEUS_MULTIPROC_DIR", "")
if _SHARED:
    Path(_SHARED).mkdir(parents=True, exist_ok=True)

from prometheus_client import CollectorRegistry, Counter, Histogram, values  # noqa: E402
from prometheus_client.mmap_dict import MmapedDict  # noqa: E402
from prometheus_client.multiprocess import MultiProcessCollector  # noqa: E402
from prometheus_client.values import MultiProcessValue  # noqa: E402

from controlplane.processes.runtime.beats import CHILD  # noqa: E402

# The process id in the name of a file of a process that no supervisor started.
_OF_PROCESS: Final = re.compile(r"_(\d+)\.db$")


def file_owner() -> str:
    """Return whose file this process counts in: a child's name, else the process id.

    The successor of a child continues its file, so there is one per child, and no count is lost.
    """
    return os.environ.get(CHILD) or str(os.getpid())


def remove_files_of_dead_processes(folder: Path) -> int:
    """Delete files named after a process that has ended; return how many."""
    removed = 0
    for file in folder.glob("*.db"):
        owner = _OF_PROCESS.search(file.name)
        if owner and not psutil.pid_exists(int(owner[1])):
            file.unlink(missing_ok=True)
            removed += 1
    return removed


def remove_unreadable_files(folder: Path, owner: str) -> int:
    """Delete the files of an owner that the library cannot read; return how many.

    A machine that lost its power leaves such files, and a request would fail with each count.
    """
    removed = 0
    for file in folder.glob(f"*_{owner}.db"):
        try:
            # The library has types but for this one.
            list(MmapedDict.read_all_values_from_file(str(file)))  # type: ignore[no-untyped-call]
        except (RuntimeError, struct.error, UnicodeDecodeError):
            file.unlink(missing_ok=True)
            removed += 1
    return removed


def prepare_files() -> None:
    """Delete the files that cannot be continued, before this process counts."""
    if _SHARED:
        remove_files_of_dead_processes(Path(_SHARED))
        remove_unreadable_files(Path(_SHARED), file_owner())


if _SHARED:
    # The library has types but for this one.
    values.ValueClass = MultiProcessValue(file_owner)  # type: ignore[no-untyped-call]

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
