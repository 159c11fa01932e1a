"""A drop as it is asked for, and what can be wrong with it."""

import math
from dataclasses import dataclass
from typing import Final

from controlplane.errors import Fields

MAX_BATCH: Final = 1000
MAX_WINDOW_S: Final = 7 * 86_400


@dataclass(frozen=True)
class DropSpec:
    """The share (above 0, at most 1) that goes: of the records, by chance.

    With `window_s`, of the windows instead: of this length, beginning every `slide_s` (None: one
    behind the other; on a split edge as the query's do), `batch` neighbours together.
    """

    share: float
    window_s: float | None = None
    slide_s: float | None = None
    batch: int = 1


def spec_faults(spec: DropSpec) -> Fields:
    """Return what is wrong with a drop, by field."""
    by_field = {
        "share": _share_faults(spec.share),
        "window_s": [] if spec.window_s is None else _seconds_faults(spec.window_s),
        "slide_s": _slide_faults(spec),
        "batch": _batch_faults(spec),
    }
    return {field: faults for field, faults in by_field.items() if faults}


def _share_faults(share: float) -> list[str]:
    if math.isfinite(share) and 0 < share <= 1:
        return []
    return ["Must be above 0 % and at most 100 %; lift the drop to keep every record"]


def _seconds_faults(seconds: float) -> list[str]:
    ms = seconds * 1000
    if math.isfinite(ms) and 1 <= ms <= MAX_WINDOW_S * 1000 and math.isclose(ms, round(ms)):
        return []
    return [f"Must be whole milliseconds, up to {MAX_WINDOW_S:,} s"]


def _slide_faults(spec: DropSpec) -> list[str]:
    if spec.slide_s is None:
        return []
    if spec.window_s is None:
        return ["Needs a window"]
    if faults := _seconds_faults(spec.slide_s):
        return faults
    return ["Is longer than the window"] if spec.slide_s > spec.window_s else []


def _batch_faults(spec: DropSpec) -> list[str]:
    if not 1 <= spec.batch <= MAX_BATCH:
        return [f"Must be 1 to {MAX_BATCH:,} windows"]
    return ["Needs a window"] if spec.batch > 1 and spec.window_s is None else []
