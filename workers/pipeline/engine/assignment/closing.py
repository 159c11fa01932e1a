"""The end of the windows of a query."""

from dataclasses import dataclass

from controlplane.wire.query import Window


@dataclass(frozen=True)
class WindowClosing:
    """When windows of a query end permanently: its windows, and its allowed lateness."""

    window: Window
    lateness_ms: int
