"""The Lab: request, run, cancel, repeat, delete, tend; the front door of this room."""

from controlplane.lab.cancellation import cancel, delete
from controlplane.lab.execution import run
from controlplane.lab.reconcile import tend
from controlplane.lab.requests import request, run_again

__all__ = ["cancel", "delete", "request", "run", "run_again", "tend"]
