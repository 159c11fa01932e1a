"""The Lab: request, run, cancel, repeat, delete, tend; the front door of this room."""

from controlplane.services.lab.deciding import cancel, delete
from controlplane.services.lab.requesting import request, run_again
from controlplane.services.lab.running import run
from controlplane.services.lab.tending import tend

__all__ = ["cancel", "delete", "request", "run", "run_again", "tend"]
