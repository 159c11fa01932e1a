"""Results of queries: windows in Redis and in the archive, and their life cycle."""

from controlplane.results.filters import (
    MAX_WINDOWS,
    STATES,
    WindowFilters,
    WindowState,
)
from controlplane.results.pages import WindowPage, keyed_windows, windows_page
from controlplane.results.values import KeyedWindow, window_row

__all__ = [
    "MAX_WINDOWS",
    "STATES",
    "KeyedWindow",
    "WindowFilters",
    "WindowPage",
    "WindowState",
    "keyed_windows",
    "window_row",
    "windows_page",
]
