"""The page of a cluster in Chromium, for what is measured on it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

PAGE: Final = "/clusters/sf/"
PATIENCE_MS: Final = 120_000


@contextmanager
def page_context(browser: Browser, url: str, cookie: str) -> Iterator[BrowserContext]:
    """Yield a context of the browser with the session of a user, and close it."""
    context = browser.new_context(base_url=url, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    cookies: Any = [{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": url}]
    context.add_cookies(cookies)
    try:
        yield context
    finally:
        context.close()


def wait_for(page: Page, condition: str) -> None:
    """Wait until a condition holds; `wait_for_function` needs eval, which the policy forbids.

    Raises `TimeoutError`.
    """
    end = time.monotonic() + PATIENCE_MS / 1000
    while not page.evaluate(condition):
        if time.monotonic() > end:
            raise TimeoutError(f"not in {PATIENCE_MS / 1000:g} s: {condition}")
        page.wait_for_timeout(50)


def metrics(session: CDPSession) -> dict[str, float]:
    """Return Chromium's figures of a page, after `Performance.enable`."""
    answer = session.send("Performance.getMetrics")
    return {metric["name"]: metric["value"] for metric in answer["metrics"]}
