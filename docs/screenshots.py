"""Take pictures of a running Weir: `make run` in one terminal, `make screenshots` in another.

Without arguments it creates docs/images again. `--all DIRECTORY` takes every page, light and dark,
wide and narrow, to look at.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, BrowserContext, Page

from controlplane import env
from controlplane.runtime.runner import ensure_login
from tests.support.chromium import running_chromium

Scheme = Literal["light", "dark"]

IMAGES: Final = Path(__file__).parent / "images"
WIDE: Final = (1280, 900)
NARROW: Final = (400, 860)
# High enough for the first four charts.
README: Final = (1280, 1130)
# Enough samples for the charts to have a shape.
WATCH_MS: Final = 45_000
PAGES: Final = {
    "fleet": "/",
    "cluster": "/clusters/sf/",
    "streams": "/clusters/sf/streams/",
    "queries": "/clusters/sf/queries/",
    "query-new": "/clusters/sf/queries/new/",
    "proposals": "/clusters/sf/proposals/",
    "audit": "/audit/",
    "webhooks": "/webhooks/",
    "help": "/help/",
}
# Pages of one row, reached by the first link of their list.
FIRST_OF: Final = {
    "stream": ("/clusters/sf/streams/", "td a[href*='/streams/']"),
    "query": ("/clusters/sf/queries/?sort=submitted", "td a[href*='/queries/']"),
    "proposal": ("/clusters/sf/proposals/", "td a[href*='/proposals/']"),
}


def main() -> None:
    """Log in and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="DIRECTORY")
    options = parser.parse_args()
    with running_chromium() as browser:
        if options.all is None:
            take_readme_picture(browser)
        else:
            options.all.mkdir(parents=True, exist_ok=True)
            take_all(browser, options.all)


def take_readme_picture(browser: Browser) -> None:
    """Watch the cluster page for a while and save it."""
    IMAGES.mkdir(exist_ok=True)
    context = logged_in(browser, "light", README)
    page = context.new_page()
    page.goto("/clusters/sf/?range=5m")
    page.wait_for_timeout(WATCH_MS)
    page.screenshot(path=IMAGES / "cluster.png")
    context.close()


def take_all(browser: Browser, directory: Path) -> None:
    """Save every page in both schemes and both widths."""
    schemes: tuple[Scheme, Scheme] = ("light", "dark")
    for scheme in schemes:
        for size in (WIDE, NARROW):
            context = logged_in(browser, scheme, size)
            for name, page in visited(context):
                page.wait_for_timeout(1500)
                page.screenshot(path=directory / f"{name}-{scheme}-{size[0]}.png", full_page=True)
            context.close()


def visited(context: BrowserContext) -> Iterator[tuple[str, Page]]:
    """Yield each page's name once it is open."""
    page = context.new_page()
    for name, path in PAGES.items():
        page.goto(path)
        yield name, page
    for name, (path, link) in FIRST_OF.items():
        page.goto(path)
        if page.locator(link).count():
            page.goto(page.locator(link).first.get_attribute("href") or path)
            yield name, page


def logged_in(browser: Browser, scheme: Scheme, size: tuple[int, int]) -> BrowserContext:
    """Return a context that is logged in as the demo's operator."""
    port = env.integer("WEIR_PORT", 8000, minimum=1, maximum=65535)
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{port}",
        color_scheme=scheme,
        viewport={"width": size[0], "height": size[1]},
    )
    login = ensure_login(env.data_dir())
    page = context.new_page()
    page.goto("/login/")
    page.fill("#id_username", login.name)
    page.fill("#id_password", login.password)
    page.click("button:has-text('Log in')")
    page.wait_for_url("**/")
    page.close()
    return context


if __name__ == "__main__":
    main()
