"""Levels of values by the limits of a policy."""

from enum import StrEnum


class Grade(StrEnum):
    """The level of a value against its limit; warn: within the dead band before the limit."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"
