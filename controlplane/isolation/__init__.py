"""Computations in child processes with limits of memory and time, which can be ended at once."""

from controlplane.isolation.child import Reporter, run_in_child
from controlplane.processes.confinement import Limits
from controlplane.processes.errors import (
    ChildDied,
    ChildFailed,
    Exhausted,
    NoChild,
    OutOfMemory,
    OutOfTime,
    Unwanted,
)
from controlplane.processes.pool import ChildPool

__all__ = [
    "ChildDied", "ChildFailed", "ChildPool", "Exhausted", "Limits", "NoChild", "OutOfMemory",
    "OutOfTime", "Reporter", "Unwanted", "run_in_child",
]  # fmt: skip
