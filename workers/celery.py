"""The Celery application: what runs, when the beat calls it, and how it meets Django."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

from django.conf import settings

from controlplane.task_names import (
    ARCHIVE,
    FIT_FORECASTERS,
    PRUNE,
    RECONCILE_EXECUTIONS,
    RECONCILE_ROUTING,
    RECORD_KEY_SKEW,
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
_PERIODS_S = {
    RECONCILE_ROUTING: 5,
    RECONCILE_EXECUTIONS: 2,
    SEND_DUE_WEBHOOKS: 5,
    REVIEW_PROPOSALS: 10,
    UPDATE_LEDGER: 10,
    REQUEUE_LAB_RUNS: 15,
    WATCH: 10,
    FIT_FORECASTERS: 30,
    RECORD_KEY_SKEW: 10,
    ARCHIVE: 2,
    ROLL_UP: 10,
    PRUNE: 300,
}
# expires: after an outage one run catches up, not a hundred.
app.conf.beat_schedule = {
    task: {"task": task, "schedule": float(period_s), "options": {"expires": period_s}}
    for task, period_s in _PERIODS_S.items()
}
# The schedule's clock file belongs to the data directory, wherever the beat was started.
app.conf.beat_schedule_filename = str(settings.DATA_DIR / "celerybeat-schedule")
