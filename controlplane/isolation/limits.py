"""The limits of a computation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits: bytes of memory beyond that of the parent, and seconds by the wall clock."""

    memory_bytes: int
    seconds: float
