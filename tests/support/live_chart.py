"""The live chart of a cluster's rates in a real browser."""

import time
from collections.abc import Callable
from typing import Any, Final

from playwright.sync_api import Page

# The time of the newest sample that the chart shows (ms), 0 without one.
NEWEST_RATE: Final = """() => {
  const chart = document.querySelector('[data-figure=rates]');
  const trace = chart?.data?.find((t) => t.meta?.field && t.x && t.x.length);
  return trace ? Number(trace.x[trace.x.length - 1]) : 0;
}"""


def wait_until(page: Page, script: str, reached: Callable[[Any], bool], seconds: float = 60) -> Any:
    """Evaluate `script` until it has `reached` something; Playwright's own wait needs eval()."""
    deadline = time.monotonic() + seconds
    while not reached(value := page.evaluate(script)):
        assert time.monotonic() < deadline, f"still {value} after {seconds} s: {script}"
        page.wait_for_timeout(200)
    return value
