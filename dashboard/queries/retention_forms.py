"""The retention of a query in forms: a number with a unit of time, and a number of windows."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from controlplane.errors import Fields
from dashboard.dialog_forms import whole_number

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
    seconds, windows = default
    faults: Fields = {}
    if "retention" in values:
        duration_s = _seconds(values["retention"], values.get("retention_unit", ""))
        if duration_s is None:
            faults["retention_s"] = ["Enter a number of whole seconds, such as 7 days"]
        else:
            seconds = duration_s
    if "retention_windows" in values:
        number = whole_number(values["retention_windows"])
        if number is None:
            faults["retention_windows"] = ["Enter a whole number"]
        else:
            windows = number
    return seconds, windows, faults


def _seconds(text: str, unit: str) -> int | None:
    """Return the whole seconds that a number of a unit is, None if it is none."""
    written = "".join(text.replace(",", "").split())
    if unit not in UNITS or len(written) > _MOST_CHARACTERS or "e" in written.lower():
        return None
    try:
        seconds = Decimal(written) * UNITS[unit]
    except InvalidOperation:
        return None
    return int(seconds) if seconds.is_finite() and seconds == int(seconds) else None
