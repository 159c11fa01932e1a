"""Values of measures with their units for messages, pages and the command line."""

from collections.abc import Callable, Mapping
from typing import Final

MISSING: Final = "–"  # noqa: RUF001 - the dash that typography has for no value
# From here on, milliseconds and seconds are written in the next unit.
_SECOND_MS: Final = 1000.0
_LONG_S: Final = 600.0
_MINUTE_S: Final = 60.0
_HOUR_S: Final = 3600.0
# From here on, values have no decimals.
_WHOLE: Final = 9.95


def value_text(value: float | None, unit: str) -> str:
    """Return a value with its unit, a dash for None; units are those of `MeasureKind`."""
    return MISSING if value is None else _TEXTS[unit](value)


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value < _SECOND_MS else _seconds(value / _SECOND_MS)


def _seconds(value: float) -> str:
    if value < _LONG_S:
        return f"{value:.0f} s" if value >= _WHOLE else f"{value:.1f} s"
    return f"{value / _MINUTE_S:.0f} min" if value < 2 * _HOUR_S else f"{value / _HOUR_S:.0f} h"


def _share(value: float) -> str:
    percent = 100 * value
    return f"{percent:.0f} %" if abs(percent) >= _WHOLE or percent == 0 else f"{percent:.1f} %"


def _rate(value: float) -> str:
    return f"{value:,.0f}/s" if value >= _WHOLE or value == 0 else f"{value:.1f}/s"


_TEXTS: Final[Mapping[str, Callable[[float], str]]] = {
    "ms": _milliseconds,
    "s": _seconds,
    "share": _share,
    "ratio": lambda value: f"{value:.2f}",
    "records/s": _rate,
}
