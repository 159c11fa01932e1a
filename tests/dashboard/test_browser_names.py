"""Names of browsers in the list of sessions."""

import pytest

from controlplane import numbers
from dashboard.browser_names import browser_name

_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (f"Mozilla/5.0 (X11; Linux x86_64) {_CHROME}", "Chrome 150 on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME} Edg/149.0", "Edge 149 on Windows"),
        (f"Mozilla/5.0 (Linux; Android 16; Pixel 9) {_CHROME}", "Chrome 150 on Android"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like"
            " Gecko) Version/26.1 Safari/605.1.15",
            "Safari 26 on macOS",
        ),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0",
         "Firefox 142 on Linux"),
        ("curl/8.14.1", "curl/8.14.1"),
        ("", numbers.MISSING),
    ],
)  # fmt: skip
def test_browser_and_system_are_named(agent: str, name: str) -> None:
    assert browser_name(agent) == name
