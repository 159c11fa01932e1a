"""Probes that check whether each process is ready, and the wait for all of them."""

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import redis
from celery import Celery

from controlplane.processes.runtime.beats import IDLE, cluster_states, last_beat_ms
from controlplane.processes.runtime.children import WORKER, Place
from controlplane.wire.foreign.telemetry import newest_rows

# A probe returns what it waits for, None if its process is ready.
Probe = Callable[[], str | None]

# The wait is reported again this often while nothing changes.
REPEAT_EVERY_S: Final = 10.0
# Spark needs about 20 s on two idle cores; after this time the logs are pointed out.
SLOW_S: Final = 120.0


def probe_web(place: Place) -> str | None:
    """Request /healthz."""
    # No proxy of the environment for requests to this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{place.address}healthz", timeout=2):
            return None
    except urllib.error.HTTPError as error:
        # A refused Host header (WEIR_ALLOWED_HOSTS) is an answer of a running process.
        return None if error.code < HTTPStatus.INTERNAL_SERVER_ERROR else "web"
    except OSError:
        return "web"


def probe_worker(place: Place, options: Mapping[str, Any]) -> str | None:
    """Ping the main Celery worker; `options` are the broker's.

    Not the Lab's worker: it may be busy with an earlier run.
    """
    control = _control(place.redis_url, tuple(options.items()))
    return None if control.ping([WORKER], timeout=0.7) else "worker"


def probe_beat(client: "redis.Redis", process: str, since_ms: int) -> str | None:
    """Look for a heartbeat of `process` after `since_ms`."""
    last = last_beat_ms(client, process)
    return None if last is not None and last >= since_ms else process


def probe_spark(client: "redis.Redis", since_ms: int) -> str | None:
    """Look for a batch of every cluster that should run and has records, by the agent's states.

    It waits for the agent's heartbeat first.
    """
    if probe_beat(client, "agent", since_ms):
        return "agent"
    waiting = [
        f"Spark of {slug} ({state})"
        for slug, state in sorted(cluster_states(client).items())
        if state not in ("stopped", IDLE) and not _runs(client, slug, state, since_ms)
    ]
    return ", ".join(waiting) or None


def wait_until_ready(
    probes: Mapping[str, Probe], say: Callable[[str], None], pause: Callable[[float], None]
) -> None:
    """Wait for all probes and report what is missing; `pause` may raise to end the wait.

    It has no timeout: `pause` raises if a process fails.
    """
    open_probes = dict(probes)
    started = reported_at = time.monotonic()
    reported = ""
    while open_probes:
        missing = {
            name: why for name, probe in open_probes.items() if (why := _safely(probe, name))
        }
        open_probes = {name: probe for name, probe in open_probes.items() if name in missing}
        text = ", ".join(missing.values())
        now = time.monotonic()
        if text and (text != reported or now - reported_at > REPEAT_EVERY_S):
            say(f"waiting for {text}{_so_far(now - started)}")
            reported, reported_at = text, now
        pause(0.25)


def _runs(client: "redis.Redis", slug: str, state: str, since_ms: int) -> bool:
    if state not in {"running", "catching up", "degraded"}:
        return False
    return any(row.get("emitted_ms", 0) >= since_ms for row in newest_rows(client, slug, 1))


def _safely(probe: Probe, name: str) -> str | None:
    try:
        return probe()
    except (redis.RedisError, OSError):
        return f"{name} (Redis does not answer)"


def _so_far(waited_s: float) -> str:
    if waited_s < REPEAT_EVERY_S:
        return ""
    return f", {waited_s:.0f} s so far" + ("; see the logs" if waited_s > SLOW_S else "")


@cache
def _control(redis_url: str, options: tuple[tuple[str, Any], ...]) -> Any:
    app = Celery("weir-runner", broker=redis_url, set_as_current=False)
    app.conf.broker_transport_options = dict(options)
    return app.control
