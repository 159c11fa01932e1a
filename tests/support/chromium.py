"""A real Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def chromium_path() -> str:
    """Return the browser of CHROMIUM or PATH; say what to install where there is none."""
    for name in (os.environ.get("CHROMIUM", ""), *_NAMES):
        if name and (found := shutil.which(name)):
            return found
    raise RuntimeError("no Chromium was found: apt-get install chromium, or set CHROMIUM")


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Yield a browser with a fresh profile; it is closed afterwards."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
