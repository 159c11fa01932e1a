"""The retention of a query in forms: a number with a unit of time, and a number of windows."""

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final

from controlplane.errors import Fields
from dashboard.forms import Reader, read_some, whole

# Seconds by unit, the longest first.
UNITS: Final = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
# No retention needs more characters than this; a longer text is not computed with.
_MOST_CHARACTERS: Final = 12


def retention_values(seconds: int, windows: int) -> dict[str, str]:
    """Return the fields of a form that show a retention, in the longest unit that fits."""
    unit = next(unit for unit, length in UNITS.items() if seconds % length == 0)
    return {
        "retention": str(seconds // UNITS[unit]),
        "retention_unit": unit,
        "retention_windows": f"{windows:,}",
    }


def retention_of(values: Mapping[str, str], default: tuple[int, int]) -> tuple[int, int, Fields]:
    """Return the seconds and windows in a form, and its faults by the services' field names.

    A value with a fault, and one that the form does not have, is that of `default`.
    """
    unit_s = UNITS.get(values.get("retention_unit", ""), 0)
    readers: dict[str, Reader] = {
        "retention": partial(_seconds, unit_s=unit_s),
        "retention_windows": whole,
    }
    shown = {name: reader for name, reader in readers.items() if name in values}
    given, faults = read_some(values, shown)
    if "retention" in faults:
        faults["retention_s"] = faults.pop("retention")
    return given.get("retention", default[0]), given.get("retention_windows", default[1]), faults


def _seconds(text: str, unit_s: int) -> int:
    """Read a number of a unit that is whole seconds; `unit_s`: 0 for an unknown unit."""
    written = "".join(text.replace(",", "").split())
    if unit_s and len(written) <= _MOST_CHARACTERS and "e" not in written.lower():
        with suppress(InvalidOperation):
            seconds = Decimal(written) * unit_s
            if seconds.is_finite() and seconds == int(seconds):
                return int(seconds)
    raise ValueError("Enter a number of whole seconds, such as 7 days")
