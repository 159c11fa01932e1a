"""The Lab: request, run, cancel, repeat and delete runs of experiments."""

from controlplane.lab.execution import requeue_lost, run
from controlplane.lab.requests import cancel, delete, estimate, repeat, request

__all__ = ["cancel", "delete", "estimate", "repeat", "request", "requeue_lost", "run"]
