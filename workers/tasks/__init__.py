"""Celery tasks: each takes an id, calls one service and leaves quietly if the row is gone."""

from workers.tasks.lab import run_lab, tend_lab
from workers.tasks.planning import compute_proposal
from workers.tasks.routing import place, tend_routing
from workers.tasks.upkeep import prune, roll_up

__all__ = ["compute_proposal", "place", "prune", "roll_up", "run_lab", "tend_lab", "tend_routing"]
