"""Units of the numbers of an explanation, and their texts."""

from enum import StrEnum

from controlplane.numbers import compact, value_text


class ValueUnit(StrEnum):
    """The units of the numbers of an explanation."""

    RATE = "records/s"
    DELIVERY_RATE = "deliveries/s"
    RECORDS = "records"
    DELIVERIES = "deliveries"
    EVALUATION_RATE = "evaluations/s"
    MS = "ms"
    SHARE = "share"
    RATIO = "ratio"
    BYTES = "bytes"
    COUNT = "count"
    SECONDS = "s"


def quantity(value: float | None, unit: ValueUnit) -> str:
    """Return a number with its unit for sentences: 1,545 records/s, 3.4 s, 46 %."""
    if value is None:
        return "unknown"
    # A sentence has no heading with the unit of a rate.
    return f"{compact(value)} {unit}" if unit.endswith("/s") else value_text(value, unit)


def pair(before: float | None, after: float | None, unit: ValueUnit) -> str:
    """Return two numbers of a unit: from 118 to 616 records/s."""
    if before is None:
        return f"to {quantity(after, unit)}"
    first, second = quantity(before, unit), quantity(after, unit)
    number, _, name = first.rpartition(" ")
    return f"from {number if second.endswith(f' {name}') and number else first} to {second}"
