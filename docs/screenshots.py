"""Take pictures of a running Weir: `make run` in one terminal, `make screenshots` in another.

Without arguments it creates docs/images again. `--all DIRECTORY` takes every page of the URL table,
light and dark, 1440 and 400 pixels wide, and reports the pages that it did not reach.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urljoin, urlsplit

import django
from playwright.sync_api import Browser, BrowserContext, Page

from controlplane import env
from controlplane.runtime.runner import ensure_login
from tests.support.chromium import running_chromium

Scheme = Literal["light", "dark"]

IMAGES: Final = Path(__file__).parent / "images"
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
WIDE: Final = (1440, 900)
NARROW: Final = (400, 860)
# High enough for the first charts.
README: Final = (1440, 1130)
# Enough samples for the charts to have a shape.
WATCH_MS: Final = 45_000
# Until figures are drawn.
SETTLE_MS: Final = 1_500
# Pages of the documentation: the name of the image, the URL name, the scheme.
BEST: Final[tuple[tuple[str, str, Scheme], ...]] = (
    ("cluster", "cluster", "light"),
    ("fleet", "fleet", "dark"),
    ("proposal", "proposal", "light"),
)


def main() -> None:
    """Log in and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="DIRECTORY")
    options = parser.parse_args()
    django.setup(set_prefix=False)
    with running_chromium() as browser:
        addresses = reachable_pages(browser)
        if options.all is None:
            take_best(browser, addresses)
        else:
            options.all.mkdir(parents=True, exist_ok=True)
            take_all(browser, addresses, options.all)


def reachable_pages(browser: Browser) -> dict[str, str]:
    """Return an address of each page by its URL name: those without parameters, then by links."""
    from tests.support.pages import page_names  # noqa: PLC0415 - reads the settings

    wanted = page_names() - {"login"}
    known = plain_pages(wanted)
    context = logged_in(browser, "light", WIDE)
    page, seen = context.new_page(), set[str]()
    while rest := [path for path in known.values() if path not in seen]:
        seen.add(rest[0])
        answer = page.goto(rest[0])
        if answer is None or answer.status != HTTPStatus.OK:
            # A form that shows its page only after a POST.
            known = {name: path for name, path in known.items() if path != rest[0]}
            continue
        for path in links(page):
            known |= dict.fromkeys({page_name(path)} & wanted - known.keys(), path)
    context.close()
    for name in sorted(wanted - known.keys()):
        print(f"weir: no picture of {name}: a form, or no link to it", file=sys.stderr)  # noqa: T201
    return {"login": "/login/"} | known


def plain_pages(names: Iterable[str]) -> dict[str, str]:
    """Return the addresses of the pages without parameters."""
    from django.urls import NoReverseMatch, reverse  # noqa: PLC0415 - needs the settings

    known = {}
    for name in sorted(names):
        with suppress(NoReverseMatch):
            known[name] = reverse(name)
    return known


def page_name(path: str) -> str:
    """Return the URL name of a path, "" for none."""
    from django.urls import Resolver404, resolve  # noqa: PLC0415 - needs the settings

    try:
        return resolve(urlsplit(path).path).view_name
    except Resolver404:
        return ""


def links(page: Page) -> list[str]:
    """Return the paths of Weir's own links on a page."""
    hrefs = page.eval_on_selector_all("a[href]", "all => all.map((a) => a.getAttribute('href'))")
    paths = [urlsplit(urljoin(page.url, href)) for href in hrefs if not href.startswith("#")]
    here = urlsplit(page.url).netloc
    return [f"{url.path}?{url.query}".rstrip("?") for url in paths if url.netloc == here]


def take_best(browser: Browser, addresses: dict[str, str]) -> None:
    """Save the pages that the documentation shows, the live one after a while."""
    IMAGES.mkdir(exist_ok=True)
    for image, name, scheme in BEST:
        if name not in addresses:
            continue
        context = logged_in(browser, scheme, README)
        page = context.new_page()
        page.goto(addresses[name])
        page.wait_for_timeout(WATCH_MS if name == "cluster" else SETTLE_MS)
        page.screenshot(path=IMAGES / f"{image}.png")
        context.close()


def take_all(browser: Browser, addresses: dict[str, str], directory: Path) -> None:
    """Save every page in both schemes and both widths."""
    for scheme in SCHEMES:
        for size in (WIDE, NARROW):
            context = logged_in(browser, scheme, size)
            for name, page in visited(context, addresses):
                file = directory / f"{name.replace(':', '-')}-{scheme}-{size[0]}.png"
                load_all(page)
                page.screenshot(path=file, full_page=True)
            context.close()


def load_all(page: Page) -> None:
    """Scroll to the parts that are loaded when they are seen, and back to the top."""
    parts = page.locator("[data-when-seen]").all()
    for part in parts:
        part.scroll_into_view_if_needed()
    if parts:
        page.wait_for_timeout(SETTLE_MS)
        page.evaluate("scrollTo(0, 0)")


def visited(context: BrowserContext, addresses: dict[str, str]) -> Iterator[tuple[str, Page]]:
    """Yield the name of each page once it is open; the login page without a session."""
    page = context.new_page()
    for name, path in sorted(addresses.items(), key=lambda item: item[0] == "login"):
        if name == "login":
            context.clear_cookies()
        page.goto(path)
        page.wait_for_timeout(SETTLE_MS)
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
