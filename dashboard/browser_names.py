"""Names of browsers, read from the header User-Agent."""

import re
from typing import Final

from controlplane import numbers

MAX_CHARS: Final = 60
# The first that fits: most browsers also name those that they imitate.
_BROWSERS: Final = (
    ("Edge", re.compile(r"Edg(?:A|iOS)?/(\d+)")),
    ("Opera", re.compile(r"OPR/(\d+)")),
    ("Samsung Internet", re.compile(r"SamsungBrowser/(\d+)")),
    ("Firefox", re.compile(r"(?:Firefox|FxiOS)/(\d+)")),
    ("Chrome", re.compile(r"(?:Headless)?(?:Chrome|CriOS)/(\d+)")),
    ("Safari", re.compile(r"Version/(\d+)[\d.]* (?:Mobile/\S+ )?Safari")),
)
_SYSTEMS: Final = (
    ("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"),
    ("Mac OS X", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip


def browser_name(agent: str) -> str:
    """Return the browser with its system, as in "Firefox 142 on Linux".

    Of an unknown browser, the beginning of what it sends; `numbers.MISSING` for nothing.
    """
    matches = ((name, pattern.search(agent)) for name, pattern in _BROWSERS)
    browser = next((f"{name} {match[1]}" for name, match in matches if match), "")
    system = next((name for part, name in _SYSTEMS if part in agent), "")
    if not browser:
        return agent[:MAX_CHARS] or numbers.MISSING
    return f"{browser} on {system}" if system else browser
