"""The Lab: request, run, cancel, repeat, change and delete runs of experiments."""

from controlplane.lab.execution import requeue_lost, run
from controlplane.lab.requests import RunOptions, cancel, delete, estimate, repeat, request
from controlplane.lab.sharing import change

__all__ = [
    "RunOptions", "cancel", "change", "delete", "estimate", "repeat", "request", "requeue_lost",
    "run",
]  # fmt: skip
