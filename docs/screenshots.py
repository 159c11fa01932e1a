"""Take pictures of a running Weir: `make run` in one terminal, `make screenshots` in another.

Without arguments it creates docs/images again. `--all DIRECTORY` takes every page of the URL table,
light and dark, 1440 and 400 pixels wide, as <page>-<theme>-<width>.png; `--pages a,b` only these.
It creates the rows that pages need, and deletes them. Pages without a picture are reported, and
the exit status is 1.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urljoin, urlsplit

import django
from playwright.sync_api import Browser, BrowserContext, Page
from playwright.sync_api import Error as BrowserError

from controlplane.installation import env
from docs.prepared_rows import Caller, prepared_rows, temporary_admin
from tests.support.chromium import running_chromium

Scheme = Literal["light", "dark"]

IMAGES: Final = Path(__file__).parent / "images"
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
WIDE: Final = (1440, 900)
NARROW: Final = (400, 860)
# A longer page is cut: more rows of a list show nothing new.
MOST_HEIGHT: Final = 6_000
# High enough for the first charts.
README: Final = (1440, 1130)
# Enough samples for the charts to have a shape.
WATCH_MS: Final = 45_000
# Until scripts have asked for the parts of a page, and until charts have the colours of a theme.
SETTLE_MS: Final = 500
RECOLOUR_MS: Final = 300
# The most that a page may take to load its parts and draw its figures.
LOAD_MS: Final = 15_000
# Pages of the documentation: the name of the image, the URL name, the scheme.
BEST: Final[tuple[tuple[str, str, Scheme], ...]] = (
    ("cluster", "cluster", "light"),
    ("fleet", "fleet", "dark"),
    ("proposal", "proposal", "light"),
)
# States of a proposal whose pages have names of their own: they are addresses of `proposal`.
STATES: Final = ("proposal-done", "execution")
_HREF: Final = re.compile(r'<a\b[^>]*?\shref="([^"#][^"]*)"')


@dataclass(frozen=True)
class PageForm:
    """A form whose answer is a page: URL name and query of its page, its action, and its fields."""

    page: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    query: str = ""


# Each is sent with a fault, so that it changes nothing, except where the answer has a secret.
FORMS: Final = {
    "comparison-ask": PageForm("comparisons", "compare/ask/", {"bytes": "x"}),
    "grant-set": PageForm("grants", "grants/set/", {"user": "nobody"}),
    "policy-change": PageForm("policy", "policy/change/", {"latency_ms": "-1", "cooldown_s": "x"}),
    "proposal-ask": PageForm("proposals", "proposals/ask/", {"nu": "x"}, "?algorithm=mms"),
    "second-factor": PageForm("account", "second-factor/start/", {"password": "{password}"}),
    "token-make": PageForm("tokens", "tokens/make/", {"name": "nightly report"}),
    "webhook-add": PageForm("webhooks", "webhooks/add/", {"name": "", "url": "ftp://example.com"}),
    "webhook-change": PageForm("webhook", "change/", {"name": "", "url": "ftp://example.com"}),
    "webhook-secret": PageForm("webhook", "secret/"),
}
_SUBMIT: Final = """([action, fields]) => {
  const form = [...document.forms].find((form) => form.getAttribute("action")?.endsWith(action));
  for (const goal of form.querySelectorAll("[name=goal]")) goal.checked = goal.value === "";
  for (const [name, value] of Object.entries(fields)) {
    const field = form.elements[name];
    if (field) { field.type = "text"; field.value = value; }
  }
  form.submit();
}"""
# Parts that the server sends later, and figures that are not drawn yet.
_LOADED: Final = """() => !document.querySelector(
  ".htmx-request, .flow-waiting, [data-figure]:not([data-waiting]):empty, [data-waiting=Loading]"
)"""


@dataclass(frozen=True)
class Site:
    """The running Weir: a browser, an admin's login, and the addresses of the pages by name."""

    browser: Browser
    login: tuple[str, str]
    addresses: dict[str, str] = field(default_factory=dict)

    def context(self, scheme: Scheme, size: tuple[int, int]) -> BrowserContext:
        """Return a browser context that is logged in."""
        context = self.browser.new_context(
            base_url=base_url(),
            color_scheme=scheme,
            viewport={"width": size[0], "height": size[1]},
        )
        page = context.new_page()
        page.goto("/login/")
        page.fill("#id_username", self.login[0])
        page.fill("#id_password", self.login[1])
        page.click("button:has-text('Log in')")
        page.wait_for_url("**/")
        page.close()
        return context


def main() -> int:
    """Log in and take the pictures; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="DIRECTORY")
    parser.add_argument("--pages", default="", help="names of pages, separated by commas")
    options = parser.parse_args()
    django.setup(set_prefix=False)
    wanted = all_names()
    if options.pages:
        wanted = set(options.pages.split(","))
        if unknown := wanted - all_names():
            parser.error(f"no such page: {', '.join(sorted(unknown))}")
    if options.all is None:
        with running_site({name for _, name, _ in BEST}) as site:
            take_best(site)
        return 0
    options.all.mkdir(parents=True, exist_ok=True)
    with running_site(wanted) as site:
        missing = take_all(site, options.all, wanted)
    for name in sorted(missing):
        print(f"weir: no picture of {name}", file=sys.stderr)  # noqa: T201
    return 1 if missing else 0


@contextmanager
def running_site(pages: set[str]) -> Iterator[Site]:
    """Yield the running Weir with the rows that the pages need, and an admin, until the end."""
    # The browser is last: Django forbids the database while Playwright's event loop runs.
    with (
        temporary_admin() as (name, password, token),
        prepared_rows(Caller(base_url(), token), pages) as rows,
        running_chromium() as browser,
    ):
        site = Site(browser, (name, password), rows.addresses)
        site.addresses.update(reachable_pages(site, rows.slug))
        yield site


def base_url() -> str:
    """Return the address of the running Weir."""
    return f"http://127.0.0.1:{env.integer('WEIR_PORT', 8000, minimum=1, maximum=65535)}"


def all_names() -> set[str]:
    """Return the names of all pages, those that only a form shows included."""
    from tests.support.pages import page_names  # noqa: PLC0415 - reads the settings

    return {*page_names(), *FORMS, *STATES}


def reachable_pages(site: Site, slug: str) -> dict[str, str]:
    """Return an address of each page by its URL name: those without parameters, then by links."""
    wanted = all_names() - {"login"} - FORMS.keys()
    known, seen = plain_pages(wanted, slug) | site.addresses, set[str]()
    context = site.context("light", WIDE)
    while rest := [path for path in known.values() if path not in seen]:
        seen.add(rest[0])
        try:
            answer = context.request.get(rest[0], timeout=LOAD_MS)
        except BrowserError:
            # A slow page of a busy machine: its picture may succeed.
            continue
        if answer.status != HTTPStatus.OK:
            known = {name: path for name, path in known.items() if path != rest[0]}
            continue
        for path in links(answer.url, answer.text()):
            known |= dict.fromkeys({page_name(path)} & wanted - known.keys(), path)
    context.close()
    return {"login": "/login/"} | known


def plain_pages(names: Iterable[str], slug: str) -> dict[str, str]:
    """Return the addresses of the pages that need no row, those of the cluster included."""
    from django.urls import NoReverseMatch, reverse  # noqa: PLC0415 - needs the settings

    known = {}
    for name in sorted(names):
        for parts in ((), (slug,)):
            with suppress(NoReverseMatch):
                known[name] = reverse(name, args=parts)
    return known


def page_name(path: str) -> str:
    """Return the URL name of a path, "" for none."""
    from django.urls import Resolver404, resolve  # noqa: PLC0415 - needs the settings

    try:
        return resolve(urlsplit(path).path).view_name
    except Resolver404:
        return ""


def links(address: str, html: str) -> list[str]:
    """Return the paths of Weir's own links on a page."""
    hrefs = (href.replace("&amp;", "&") for href in _HREF.findall(html))
    urls = [urlsplit(urljoin(address, href)) for href in hrefs]
    here = urlsplit(address).netloc
    return [f"{url.path}?{url.query}".rstrip("?") for url in urls if url.netloc == here]


def take_best(site: Site) -> None:
    """Save the pages that the documentation shows, the live one after a while."""
    IMAGES.mkdir(exist_ok=True)
    for image, name, scheme in BEST:
        if name not in site.addresses:
            continue
        context = site.context(scheme, README)
        page = context.new_page()
        page.goto(site.addresses[name])
        page.wait_for_timeout(WATCH_MS if name == "cluster" else SETTLE_MS)
        page.screenshot(path=IMAGES / f"{image}.png")
        context.close()


def take_all(site: Site, directory: Path, names: set[str]) -> set[str]:
    """Save the pages in both schemes and both widths; return the names of those not reached."""
    missing = set()
    for size in (WIDE, NARROW):
        context = site.context("light", size)
        # Last, as it ends the session.
        for name in sorted(names, key=lambda name: (name == "login", name)):
            if name == "login":
                context.clear_cookies()
            page = context.new_page()
            try:
                open_page(page, site, name)
                save(page, directory, name, size[0])
            except (KeyError, BrowserError) as error:
                print(f"weir: {name}: {error}", file=sys.stderr)  # noqa: T201
                missing.add(name)
            page.close()
        context.close()
    return missing


def open_page(page: Page, site: Site, name: str) -> None:
    """Open a page, by its form where it has one. Raises `KeyError` without an address."""
    form = FORMS.get(name)
    page.goto(site.addresses[form.page if form else name] + (form.query if form else ""))
    if form:
        fields = {key: value.format(password=site.login[1]) for key, value in form.fields.items()}
        with page.expect_navigation():
            page.evaluate(_SUBMIT, [form.action, fields])
    settle(page)


def settle(page: Page) -> None:
    """Make the page as high as its content, so that parts load that do it in view; wait for them.

    What stays fixed to the view, such as the navigation, then reaches over the whole picture.
    """
    for _ in range(2):
        page.wait_for_timeout(SETTLE_MS)
        with suppress(BrowserError):
            page.wait_for_function(_LOADED, timeout=LOAD_MS)
        size = page.viewport_size or {"width": WIDE[0], "height": WIDE[1]}
        height = page.evaluate("document.documentElement.scrollHeight")
        size["height"] = max(size["height"], min(height, MOST_HEIGHT))
        page.set_viewport_size(size)


def save(page: Page, directory: Path, name: str, width: int) -> None:
    """Save the view in both schemes."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(RECOLOUR_MS)
        page.screenshot(path=directory / f"{name.replace(':', '-')}-{scheme}-{width}.png")


if __name__ == "__main__":
    sys.exit(main())
