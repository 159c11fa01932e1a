"""Celery tasks: each takes an id, calls a service, and ignores deleted rows."""

from workers.tasks.executions import advance, reconcile_executions, update_ledger
from workers.tasks.housekeeping import prune, roll_up
from workers.tasks.lab import requeue_lab_runs, run_lab
from workers.tasks.planning import compute_proposal
from workers.tasks.routing import place, reconcile_routing
from workers.tasks.watch_cycles import review_proposal, watch
from workers.webhooks.tasks import send_due_webhooks, send_webhook

__all__ = [
    "advance",
    "compute_proposal",
    "place",
    "prune",
    "reconcile_executions",
    "reconcile_routing",
    "requeue_lab_runs",
    "review_proposal",
    "roll_up",
    "run_lab",
    "send_due_webhooks",
    "send_webhook",
    "update_ledger",
    "watch",
]
