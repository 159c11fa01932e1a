"""The Lab: request, run, cancel, repeat and delete runs of experiments."""

from controlplane.lab.execution import run
from controlplane.lab.reconcile import requeue_lost
from controlplane.lab.requests import cancel, delete, repeat, request

__all__ = ["cancel", "delete", "repeat", "request", "requeue_lost", "run"]
