"""Every page of the URL table: accessible in both themes, and kept by the content policy."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Response, ViewportSize

from controlplane.access.middleware import POLICY
from tests.dashboard.browser.conftest import apart, is_fault, log_in
from tests.support import cluster as made
from tests.support.axe import COLOURS, axe_source, violations
from tests.support.nightly import NIGHTLY
from tests.support.pages import PageAddress, page_world

pytestmark = pytest.mark.browser

WIDE: Final[ViewportSize] = {"width": 1280, "height": 900}
NARROW: Final[ViewportSize] = {"width": 400, "height": 900}
# 0.1 is "good" by the Core Web Vitals; a line that wraps in the top bar moves a page by 0.2.
_MOST_SHIFT = 0.03
# Adds up how far parts move that no person moved (Layout Instability API), in screens.
_SHIFTS = """
window.weirShift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.weirShift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
# The badge has another text when the socket is connected; drawings come later.
_SETTLE_MS = 250
# What brings the parts of a page that live updates replace. Scripts, browsers and people, who
# resize fields, give parts a style: the content policy forbids an update to copy it.
_UPDATE = """() => {
  document.querySelectorAll("[id]").forEach((part) => part.style?.setProperty("order", "0"));
  ["sample", "tick", "event", "status"].forEach((name) =>
    document.body.dispatchEvent(new CustomEvent(`weir:${name}`, {detail: {}})));
}"""
_SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
# Swagger UI draws the reference of the API; only what Weir puts around it is judged.
_FOREIGN = "#swagger-ui"


@pytest.fixture
def pages(web: str) -> list[PageAddress]:
    """The pages of a cluster with rows of every kind."""
    return apart(lambda: page_world(made.actor("admin")), patience_s=120)


@pytest.fixture
def opened(chromium: Browser, web: str, pages: list[PageAddress]) -> Iterator[Page]:
    """An admin's browser; without motion, so that no colour is measured on its way."""
    context = chromium.new_context(base_url=web, viewport=WIDE, reduced_motion="reduce")
    context.add_init_script(_SHIFTS)
    context.add_init_script(axe_source())
    page = context.new_page()
    log_in(page, web, "a-admin")
    yield page
    context.close()


@pytest.mark.nightly("browser", by_day=True)
def test_pages_are_accessible_and_keep_the_content_policy(
    opened: Page, pages: list[PageAddress]
) -> None:
    """WCAG 2.2 AA by axe-core: nothing serious or critical; no error in the console.

    On a narrow screen, where lines wrap, nothing moves while the page is loading. Every page by
    night, every eighth by day.
    """
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(f"{opened.url}: {error}"))
    opened.on(
        "console",
        lambda message: (
            faults.append(f"{opened.url}: {message.text[:300]}") if is_fault(message) else None
        ),
    )
    for address in pages[:: 1 if NIGHTLY else 8]:
        opened.set_viewport_size(NARROW)
        answer = opened.goto(address.path)
        assert answer is not None
        faults += policy_faults(address, answer)
        faults += [f"{address.name}: {fault}" for fault in narrow_faults(opened)]
        # After what moves while loading: an update replaces parts of the page.
        opened.evaluate(_UPDATE)
        opened.set_viewport_size(WIDE)
        faults += [f"{address.name}: {fault}" for fault in accessibility_faults(opened)]
    assert faults == [], "\n".join(faults)


def policy_faults(address: PageAddress, answer: Response) -> list[str]:
    """Return what a page has against the content policy, "" for nothing."""
    if answer.status != 200:
        return [f"{address.name}: status {answer.status}"]
    if answer.headers.get("content-security-policy") != POLICY:
        return [f"{address.name}: another policy"]
    return []


def narrow_faults(page: Page) -> list[str]:
    """Return whether a loaded page on a narrow screen has moved, and whether it scrolls."""
    page.wait_for_timeout(_SETTLE_MS)
    moved: float = page.evaluate("weirShift")
    faults = [f"moves by {moved:.3f} screens while loading"] if moved > _MOST_SHIFT else []
    return faults + (["scrolls sideways, narrow"] if page.evaluate(_SIDEWAYS) else [])


def accessibility_faults(page: Page) -> list[str]:
    """Return what is serious in both themes, and what scrolls sideways."""
    faults = []
    for theme, rules in (("light", None), ("dark", COLOURS)):
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        faults += [
            f"{theme}, {fault.rule}: {', '.join(fault.elements[:4])}"
            for fault in violations(page, rules, without=_FOREIGN)
            if fault.is_serious
        ]
    if page.evaluate(_SIDEWAYS):
        faults.append("scrolls sideways")
    return faults
