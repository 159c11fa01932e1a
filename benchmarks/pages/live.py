"""The page of a cluster in Chromium during telemetry: bytes, paints, work, delays, memory."""

import argparse
import time
from collections import Counter
from pathlib import Path
from statistics import quantiles
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

from benchmarks.control_plane import running_services
from benchmarks.pages.browsing import PAGE, metrics, page_context, wait_for
from benchmarks.pages.heap import open_figures, played_figures
from benchmarks.pages.report import Figure, announce
from benchmarks.pages.sockets import oldest_message_s
from benchmarks.pages.world import Telemetry, live_cluster
from tests.controlplane.api.callers import user_of
from tests.support.chromium import running_chromium
from tests.support.cluster import actor

CHARTS: Final = 4
# After a load: what is fetched later belongs to it, too.
SETTLED_MS: Final = 3000
# Answers whose sizes are printed.
LARGEST: Final = 5
_PAINTS: Final = """() => new Promise((resolve) => {
  let largest = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntries()) largest = startTime;
  });
  observer.observe({ type: "largest-contentful-paint", buffered: true });
  const first = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0;
  setTimeout(() => resolve([first, largest]), 200);
})"""
_LOADED: Final = "document.querySelector('#heat-cell')?.hidden === false"
_DRAWN: Final = f"document.querySelectorAll('[data-figure]:has(.main-svg)').length >= {CHARTS}"
_BADGE: Final = "document.getElementById('connection')?.dataset.grade"


def measure_live(data: Path, options: argparse.Namespace) -> list[Figure]:
    """Return the figures of the page of a large cluster, and of many sockets."""
    cluster = live_cluster(actor("operator"))
    cookies = [_session(user_of(actor("viewer", f"reader-{i}"))) for i in range(4)]
    figures: list[Figure] = []
    with running_services(data, ["web", "relay"]) as url:
        telemetry = Telemetry(cluster)
        if "live" in options.only:
            with running_chromium() as browser:
                figures += announce(_load_figures(browser, url, cookies[0]))
                figures += announce(_watch_figures(browser, url, cookies[0], options))
        if "sockets" in options.only:
            oldest = oldest_message_s(url, cookies, options.sockets, options.seconds)
            name = f"oldest message of {options.sockets} sockets"
            figures += announce([Figure(name, oldest, 2.0, "s", "clients on the same cores")])
        if "open" in options.only:
            with running_chromium() as browser:
                figures += announce(_open_figures(browser, url, cookies[0], options.minutes))
        if "live" in options.only:
            figures += announce([_badge_figure(url, cookies[0], telemetry)])
        else:
            telemetry.stop()
    return figures


def _session(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def _load_figures(browser: Browser, url: str, cookie: str) -> list[Figure]:
    """Return the bytes of a first and of a later load, and the paints of the later one."""
    with page_context(browser, url, cookie) as context:
        page = context.new_page()
        cold, _ = _loaded(page)
        warm, paints = min((_loaded(page) for _ in range(3)), key=lambda load: load[1][1])
    return [
        Figure("bytes over the wire, cold", sum(cold.values()) / 1000, 700, "kB", _largest(cold)),
        Figure("bytes over the wire, warm", sum(warm.values()) / 1000, 60, "kB", _largest(warm)),
        Figure("first contentful paint, warm", paints[0] / 1000, 0.5, "s", "best of 3"),
        Figure("largest contentful paint, warm", paints[1] / 1000, 1.0, "s", "best of 3"),
    ]


def _loaded(page: Page) -> tuple[dict[str, float], list[float]]:
    """Load the page; return the bytes of each answer by path, without the socket, and paints."""
    session = page.context.new_cdp_session(page)
    paths: dict[str, str] = {}
    sizes: Counter[str] = Counter()

    def name(event: dict[str, Any]) -> None:
        paths[event["requestId"]] = urlsplit(event["response"]["url"]).path

    def count(event: dict[str, Any]) -> None:
        sizes[paths.get(event["requestId"], "")] += event["encodedDataLength"]

    session.on("Network.responseReceived", name)
    session.on("Network.loadingFinished", count)
    session.send("Network.enable")
    page.goto(PAGE)
    wait_for(page, _LOADED)
    page.wait_for_timeout(SETTLED_MS)
    paints: list[float] = page.evaluate(_PAINTS)
    session.detach()
    return dict(sizes), paints


def _largest(sizes: dict[str, float]) -> str:
    """Return the largest answers with their kB."""
    ordered = sorted(sizes.items(), key=lambda item: -item[1])[:LARGEST]
    return ", ".join(f"{path} {size / 1000:.1f}" for path, size in ordered)


def _watch_figures(
    browser: Browser, url: str, cookie: str, options: argparse.Namespace
) -> list[Figure]:
    """Return work and delays of live charts, and the growth of memory over an hour of samples."""
    with page_context(browser, url, cookie) as context:
        page, session = _live_page(context)
        page.evaluate("window.weirChartDelays = []")
        before = metrics(session)
        page.wait_for_timeout(1000 * options.seconds)
        after = metrics(session)
        delays: list[float] = page.evaluate("window.weirChartDelays")
        parts = _parts(before, after)
        work = (after["TaskDuration"] - before["TaskDuration"]) * 30 / options.seconds
        return [
            Figure("main-thread work in 30 s of live charts", work, 1.0, "s", parts),
            Figure("telemetry to pixel, p95", quantiles(delays, n=20)[-1], 300, "ms",
                   f"{len(delays)} samples, median {sorted(delays)[len(delays) // 2]:.0f} ms"),
            *played_figures(page, session, options.samples),
        ]  # fmt: skip


def _open_figures(browser: Browser, url: str, cookie: str, minutes: int) -> list[Figure]:
    with page_context(browser, url, cookie) as context:
        page, session = _live_page(context)
        return open_figures(page, session, minutes)


def _live_page(context: BrowserContext) -> tuple[Page, CDPSession]:
    """Return the page with its live charts drawn, and a session that counts its work."""
    page = context.new_page()
    page.goto(PAGE)
    page.locator("#charts").scroll_into_view_if_needed()
    page.locator("#records, #charts > :last-child").last.scroll_into_view_if_needed()
    wait_for(page, _DRAWN)
    page.wait_for_timeout(5000)
    session = context.new_cdp_session(page)
    # Processor time of the thread: other processes of the machine do not count.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return page, session


def _parts(before: dict[str, float], after: dict[str, float]) -> str:
    parts = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
    return ", ".join(f"{name[:-8].lower()} {after[name] - before[name]:.2f} s" for name in parts)


def _badge_figure(url: str, cookie: str, telemetry: Telemetry) -> Figure:
    """Return how long after the last row the badge reports missing data; end the telemetry."""
    with running_chromium() as browser, page_context(browser, url, cookie) as context:
        page = context.new_page()
        page.goto(PAGE)
        wait_for(page, f"{_BADGE} === 'good'")
        page.wait_for_timeout(3000)
        last_s = telemetry.stop()
        wait_for(page, f"{_BADGE} === 'warn'")
        return Figure("badge reports missing data after", time.time() - last_s, 6.5, "s",
                      "5 s of silence, read once per second")  # fmt: skip
