"""JSON forms of values of records: times and dates in ISO 8601, bytes as base64."""

import math
from base64 import b64encode
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """Return the JSON form of a value of another type; for `json.dumps(default=…)`."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(type(value).__name__)


def finite(value: Any) -> Any:
    """Return a value with NaN, Infinity and -Infinity as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {name: finite(element) for name, element in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return value
