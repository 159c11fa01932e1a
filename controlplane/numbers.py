"""Formatting of numbers; static/js/format.js has the same rules."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

MISSING = "–"  # noqa: RUF001 - the dash that typography has for no value
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
# Smaller numbers have no prefix.
_WRITTEN_OUT = 10_000.0
# From here on bytes have a prefix, and milliseconds are seconds.
_GROUPED = 1_000.0
# Fewer seconds have a decimal; from the second number on they are written as minutes everywhere.
_SHORT_S, _LONG_S = 10.0, 600.0


def compact(value: float | None) -> str:
    """Return a number in at most five characters and a prefix: 0.42, 7.5, 812, 9,431, 12.3 k."""
    if value is None:
        return MISSING
    size = abs(value)
    if size >= _WRITTEN_OUT:
        return _prefixed(value)
    if size >= 100 or value == int(value):  # noqa: PLR2004 - three digits need no decimals
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"  # noqa: PLR2004


def _prefixed(value: float) -> str:
    scale, prefix = next(pair for pair in _PREFIXES if abs(value) >= pair[0])
    scaled = value / scale
    return f"{scaled:.0f} {prefix}" if abs(scaled) >= 100 else f"{scaled:.1f} {prefix}"  # noqa: PLR2004


def size(value: float | None) -> str:
    """Return a number of bytes: 812 B, 1.2 kB, 12.3 kB."""
    text = compact(value) if value is None or abs(value) < _GROUPED else _prefixed(value)
    return text if value is None else f"{text}B" if text[-1].isalpha() else f"{text} B"


def seconds(value: float | None) -> str:
    """Return a number of seconds in its largest fitting unit, below ten with one decimal."""
    if value is None:
        return MISSING
    return f"{value:.1f} s" if 0 < value < _SHORT_S else duration(timedelta(seconds=value))


def seconds_range(least: float, most: float) -> str:
    """Return a range of seconds, one value if both round to it."""
    low, high = seconds(least), seconds(most)
    return low if low == high else f"{low} to {high}"


def signed(value: float | None) -> str:
    """Return a change of a ratio with its sign and three decimals, 0 if it rounds to 0."""
    if value is None:
        return MISSING
    return f"{value:+.3f}".replace("-", "\N{MINUS SIGN}") if abs(value) >= 0.0005 else "0"  # noqa: PLR2004


def ratio(value: float | None) -> str:
    """Return a ratio with two decimals."""
    return MISSING if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    """Return a share in per cent: 5 %, 0.4 %, < 0.1 % for less than a tenth, but not nothing.

    Without decimals if it is whole, and from 10 % on.
    """
    if value is None:
        return MISSING
    scaled = round(100 * value, 9)
    if 0 < scaled < 0.05:  # noqa: PLR2004 - it would round to 0.0
        return "< 0.1 %"
    is_short = abs(scaled) >= 9.95 or scaled == int(scaled)  # noqa: PLR2004
    return f"{scaled:,.0f} %" if is_short else f"{scaled:.1f} %"


def points(value: float | None) -> str:
    """Return a share in per cent as points, without a unit: 16, 0.4."""
    if value is None:
        return MISSING
    scaled = 100 * value
    return f"{scaled:.0f}" if not 0.05 <= abs(scaled) < 9.95 else f"{scaled:.1f}"  # noqa: PLR2004


def change_in_points(value: float | None) -> str:
    """Return a change of a share in points with its direction: ↑ 8.0, → 0."""
    if value is None:
        return MISSING
    text = points(abs(value))
    if text == "0":
        return "→ 0"
    return f"{'↑' if value > 0 else '↓'} {text}"


def milliseconds(value: float | None) -> str:
    """Return a number of milliseconds, in s from one second on: 812 ms, 10.0 s, 12 min."""
    if value is None:
        return MISSING
    if value < _GROUPED:
        return f"{value:,.0f} ms"
    return f"{value / 1000:,.1f} s" if value / 1000 < _LONG_S else seconds(value / 1000)


def limited_seconds(value: float | None) -> str:
    """Return a number of seconds that stands beside its limit: not in min before ten of them."""
    if value is None or value >= _LONG_S or value < _SHORT_S:
        return seconds(value)
    return f"{value:.0f} s"


def result(value: object) -> str:
    """Return a value of results: whole numbers exactly, others with four digits, times in UTC."""
    match value:
        case None | []:
            text = MISSING
        case bool():
            text = "true" if value else "false"
        case float() if abs(value) < 1000:  # noqa: PLR2004 - four digits before the point
            text = f"{value:.4g}"
        case int() | float():
            text = f"{value:,.0f}"
        case datetime():
            text = f"{value:%Y-%m-%d %H:%M:%S}"
        case list():
            text = ", ".join(_counted(item) for item in value)
        case _:
            text = str(value)
    return text


def _counted(pair: object) -> str:
    """Return a value with its count, for lists of most frequent values."""
    match pair:
        case [value, int(count)]:
            return f"{value} ({count:,})"
    return str(pair)


def counted(number: int, things: str) -> str:
    """Return a number with its noun, given in the plural: 1 query, 2,000 queries."""
    return f"{number:,} {_noun(number, things)}"


def _noun(number: float, things: str) -> str:
    if number != 1:
        return things
    return f"{things[:-3]}y" if things.endswith("ies") else things.removesuffix("s")


def age(moment: datetime | None, now: datetime) -> str:
    """Return the age of a moment in its largest fitting unit."""
    if moment is None:
        return "never"
    elapsed = now - moment
    if elapsed >= timedelta(0):
        return f"{duration(elapsed)} ago"
    return f"in {duration(-elapsed)}"


def clock(moment: datetime, now: datetime) -> str:
    """Return a time as that of the day, with its date unless it is today."""
    return f"{moment:%H:%M}" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M}"


def duration(length: timedelta) -> str:
    """Return a duration in its largest fitting unit: 42 s, 7 min, 5 h, 3 d."""
    seconds = length.total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def with_unit(value: float | None, unit: str) -> tuple[str, str]:
    """Return a measure as number and unit: 3.4 and s, 103 and %, 2.72 and "", 2,640 and /s.

    `unit`: as of `value_text`.
    """
    text = value_text(value, unit)
    if text.endswith("/s"):
        return text.removesuffix("/s"), "/s"
    number, _, name = text.rpartition(" ")
    return (number, name) if number else (name, "")


def change(value: float, before: float, unit: str) -> str:
    """Return the change of a measure with its direction and unit: ↑ 0.9 s, ↓ 17 points."""
    number, shown = with_unit(abs(value - before), unit)
    if number.startswith("<") or not any(digit in number for digit in "123456789"):
        return "no change"
    arrow = "↑" if value > before else "↓"
    shown = {"%": " points", "/s": "/s", "": ""}.get(shown, f" {shown}")
    return f"{arrow} {number}{shown}"


def value_text(value: float | None, unit: str) -> str:
    """Return a measure as text: 3.4 s, 103 %, 2.72, 2,640/s, 1.2 MB, 3 moves.

    `unit`: ms, s, share, ratio, count, bytes, a plural noun, or that of a rate: records/s.
    """
    if value is None:
        return MISSING
    if unit.endswith("/s"):
        return f"{compact(value)}/s"
    write = _WRITERS.get(unit)
    return write(value) if write is not None else f"{compact(value)} {_noun(value, unit)}"


_WRITERS: Mapping[str, Callable[[float], str]] = {
    "ms": milliseconds,
    "s": limited_seconds,
    "share": percent,
    "ratio": ratio,
    "bytes": size,
    "count": compact,
    "": compact,
}


def count_word(count: int) -> str:
    """Return a small number as a word."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven")
    return words[count] if count < len(words) else str(count)


def lowered(text: str) -> str:
    """Return a sentence as a clause: with a small first letter."""
    return f"{text[:1].lower()}{text[1:]}"


def raised(text: str) -> str:
    """Return a clause as a sentence: with a capital first letter."""
    return f"{text[:1].upper()}{text[1:]}"
