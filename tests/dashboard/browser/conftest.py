"""A real Chromium, and Weir's web process on a port of its own."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
import uvicorn
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, Route, expect

from controlplane.models import Proposal
from controlplane.processes.asgi import application
from tests.support import cluster as made
from tests.support.chromium import running_chromium
from tests.support.execution import ready, scattered
from tests.support.policies import set_policy
from tests.support.redis_server import free_port

T = TypeVar("T")
# What a page shows within a second may take long on a busy machine.
PATIENCE_S = 60
expect.set_options(timeout=PATIENCE_S * 1000)


def apart(work: Callable[[], T], patience_s: float = 30) -> T:
    """Return what the work returns, done in a thread without Playwright's event loop."""

    def done() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(done).result(timeout=patience_s)


def log_in(page: Page, web: str, name: str) -> None:
    """Give the page a session of the user; tests of the login form are in other files."""

    def session() -> str:
        client = Client()
        client.force_login(User.objects.get(username=name))
        return client.cookies[settings.SESSION_COOKIE_NAME].value

    key = apart(session)
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": web}])


# Of the package, not of the session: Playwright keeps an event loop in this thread, which later
# tests of asynchronous code must not meet.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of this folder; each test has a context of its own."""
    # The test still reads its own database, which is emptied after all fixtures have ended.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        with running_chromium() as browser:
            yield browser


@pytest.fixture
def web(transactional_db: None, redis_url: str) -> Iterator[str]:
    """The address of the web process, on the test's database and Redis."""
    port = free_port()
    config = uvicorn.Config(application, port=port, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the web process ended"
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    server.force_exit = True
    thread.join(timeout=60)


@pytest.fixture
def proposal(web: str, request: pytest.FixtureRequest) -> Proposal:
    """A computed proposal of six or more moves, in steps of at most the parameter, or three."""

    def computed() -> Proposal:
        by = made.actor("approver")
        cluster = made.small_cluster(by)
        set_policy(cluster, cluster_moves=getattr(request, "param", 3))
        return ready(by, scattered(by, cluster))

    return apart(computed)


def is_fault(message: ConsoleMessage) -> bool:
    """Return True for an error in the console other than a refusal by the server."""
    refused = ("Failed to load resource", "Response Status Error Code")
    return message.type == "error" and not any(text in message.text for text in refused)


@contextmanager
def faultless_page(chromium: Browser, base_url: str) -> Iterator[Page]:
    """Yield a page of a context of its own; an error on it fails the test."""
    context = chromium.new_context(base_url=base_url, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda fault: faults.append(str(fault)))
    opened.on(
        "console",
        lambda told: faults.append(told.text) if is_fault(told) else None,
    )
    yield opened
    context.close()
    assert faults == []


@pytest.fixture
def page(chromium: Browser, web: str) -> Iterator[Page]:
    """A fresh page of the web process whose errors fail the test."""
    with faultless_page(chromium, web) as opened:
        yield opened


@pytest.fixture
def module(chromium: Browser) -> Iterator[Page]:
    """An empty page that imports modules from the collected static files, without a server."""

    def answer(route: Route) -> None:
        name = urlsplit(route.request.url).path.removeprefix(settings.STATIC_URL)
        if name == "/":
            route.fulfill(content_type="text/html", body="<!doctype html><body></body>")
        else:
            route.fulfill(path=settings.STATIC_ROOT / name)

    with faultless_page(chromium, "http://modules.test") as opened:
        opened.route("**/*", answer)
        opened.goto("/")
        yield opened
