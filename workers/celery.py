"""The Celery application: what runs, when the beat calls it, and how it meets Django."""

import os
import sys
from contextlib import ExitStack
from typing import Any

from celery import Celery
from celery.signals import before_task_publish, task_postrun, task_prerun

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

from django.conf import settings
from django.db import close_old_connections

from controlplane.events import traces
from controlplane.events.task_names import (
    FIT_FORECASTERS,
    FOLLOW_DESCRIPTIONS,
    PRUNE,
    QUEUED_MS,
    RECONCILE_EXECUTIONS,
    RECONCILE_ROUTING,
    RECONCILE_SCENARIOS,
    RECORD_COSTS,
    RECORD_KEY_SKEW,
    REQUEUE_PROPOSALS,
    REVIEW_PROPOSALS,
    ROLL_UP,
    SEAL_AUDIT,
    SEND_DUE_WEBHOOKS,
    SEND_LINEAGE,
    UPDATE_FINALITY,
    UPDATE_LEDGER,
    UPDATE_STATISTICS,
    UPDATE_VIEWS,
    VERIFY_AUDIT,
    WATCH,
)
from controlplane.installation.extras import lab_values
from controlplane.processes.runtime.beats import now_ms
from workers.celery_beats import WorkerHeartbeat

app = Celery("weir")
app.config_from_object("django.conf:settings", namespace="CELERY")
# All tasks, or those of one package: a worker without the planners takes a third of the memory.
_ALL = ["workers", *lab_values("workers.lab:TASK_PACKAGES")]
app.autodiscover_tasks([os.environ["WEIR_TASKS"]] if "WEIR_TASKS" in os.environ else _ALL)
# The spans of the tasks that this process executes, by task id.
_task_spans: dict[str, ExitStack] = {}
_PERIODS_S = {
    RECONCILE_ROUTING: 5,
    RECONCILE_SCENARIOS: 5,
    RECONCILE_EXECUTIONS: 2,
    SEND_DUE_WEBHOOKS: 5,
    **({SEND_LINEAGE: 10} if settings.OPENLINEAGE_URL else {}),
    REVIEW_PROPOSALS: 10,
    UPDATE_LEDGER: 10,
    REQUEUE_PROPOSALS: 10,
    WATCH: 10,
    FIT_FORECASTERS: 30,
    RECORD_KEY_SKEW: 10,
    FOLLOW_DESCRIPTIONS: 30,
    RECORD_COSTS: 30,
    UPDATE_FINALITY: 2,
    UPDATE_VIEWS: 5,
    ROLL_UP: 10,
    UPDATE_STATISTICS: 60,
    PRUNE: 300,
    SEAL_AUDIT: 5,
    VERIFY_AUDIT: 3600,
    **dict(lab_values("workers.lab:PERIODS_S")),
}
# expires: after an outage one run catches up, not a hundred.
app.conf.beat_schedule = {
    task: {"task": task, "schedule": float(period_s), "options": {"expires": period_s}}
    for task, period_s in _PERIODS_S.items()
}
app.steps["consumer"].add(WorkerHeartbeat)
# Celery would close the connections to the databases before and after each task.
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize
# The schedule's clock file belongs to the data directory, wherever the beat was started.
app.conf.beat_schedule_filename = str(settings.DATA_DIR / "celerybeat-schedule")


@before_task_publish.connect
def note_origin(headers: dict[str, Any], **_: Any) -> None:
    """Add the time of sending to a task, which shows how long it has waited, and its trace."""
    headers[QUEUED_MS] = now_ms()
    if context := traces.current():
        headers[traces.HEADER] = context


@task_prerun.connect
def check_connections(task: Any, **_: Any) -> None:
    """Close connections to the databases that are old or dead, as Django does for requests."""
    if not task.request.is_eager:
        close_old_connections()


@task_prerun.connect
def begin_span(task_id: str, task: Any, **_: Any) -> None:
    """Begin the span of a task that a traced request or task has sent."""
    if parent := task.request.get(traces.HEADER):
        _task_spans[task_id] = stack = ExitStack()
        stack.enter_context(
            traces.start_span(task.name, parent, **{"messaging.message.id": task_id})
        )


@task_postrun.connect
def end_span(task_id: str, **_: Any) -> None:
    """End the span of a task."""
    if stack := _task_spans.pop(task_id, None):
        stack.close()
