"""The Celery application: what runs, when the beat calls it, and how it meets Django."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

from django.conf import settings

from controlplane.task_names import (
    ARCHIVE,
    PRUNE,
    RECONCILE_EXECUTIONS,
    RECONCILE_ROUTING,
    REQUEUE_LAB_RUNS,
    REVIEW_PROPOSALS,
    ROLL_UP,
    SEND_DUE_WEBHOOKS,
    UPDATE_LEDGER,
    WATCH,
)

app = Celery("weir")
app.config_from_object("django.conf:settings", namespace="CELERY")
# All tasks, or those of one package: a worker without the planners takes a third of the memory.
app.autodiscover_tasks([os.environ.get("WEIR_TASKS", "workers")])
app.conf.beat_schedule = {
    # expires: after an outage one run catches up, not a hundred.
    "reconcile routing": {"task": RECONCILE_ROUTING, "schedule": 5.0, "options": {"expires": 5}},
    "reconcile executions": {
        "task": RECONCILE_EXECUTIONS,
        "schedule": 2.0,
        "options": {"expires": 2},
    },
    "send webhooks": {"task": SEND_DUE_WEBHOOKS, "schedule": 5.0, "options": {"expires": 5}},
    "review proposals": {
        "task": REVIEW_PROPOSALS,
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "update ledger": {"task": UPDATE_LEDGER, "schedule": 10.0, "options": {"expires": 10}},
    "requeue lab runs": {"task": REQUEUE_LAB_RUNS, "schedule": 15.0, "options": {"expires": 15}},
    "watch": {"task": WATCH, "schedule": 10.0, "options": {"expires": 10}},
    "archive": {"task": ARCHIVE, "schedule": 2.0, "options": {"expires": 2}},
    "roll up": {"task": ROLL_UP, "schedule": 10.0, "options": {"expires": 10}},
    "prune": {"task": PRUNE, "schedule": 300.0, "options": {"expires": 300}},
}
# The schedule's clock file belongs to the data directory, wherever the beat was started.
app.conf.beat_schedule_filename = str(settings.DATA_DIR / "celerybeat-schedule")
