"""The limits of a child."""

from dataclasses import dataclass
from typing import Final

MB: Final = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits: bytes of memory beyond that of the parent, and seconds by the wall clock."""

    memory_bytes: int
    seconds: float
