"""Celery tasks: each takes an id, calls one service and leaves quietly if the row is gone."""

from workers.tasks.executing import advance, tend_executions, tend_ledger
from workers.tasks.lab import run_lab, tend_lab
from workers.tasks.planning import compute_proposal
from workers.tasks.routing import place, tend_routing
from workers.tasks.upkeep import prune, roll_up
from workers.tasks.watching import judge_proposal, watch
from workers.webhooks.tasks import send_webhook, tend_webhooks

__all__ = [
    "advance",
    "compute_proposal",
    "judge_proposal",
    "place",
    "prune",
    "roll_up",
    "run_lab",
    "send_webhook",
    "tend_executions",
    "tend_lab",
    "tend_ledger",
    "tend_routing",
    "tend_webhooks",
    "watch",
]
