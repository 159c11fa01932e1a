"""Computations in child processes with limits of memory and time, which can be ended at once."""

from controlplane.isolation.child import Reporter, run_in_child
from controlplane.isolation.errors import ChildDied, Exhausted, OutOfMemory, OutOfTime, Unwanted
from controlplane.isolation.limits import Limits

__all__ = [
    "ChildDied", "Exhausted", "Limits", "OutOfMemory", "OutOfTime", "Reporter", "Unwanted",
    "run_in_child",
]  # fmt: skip
