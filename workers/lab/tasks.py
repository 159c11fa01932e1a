"""Celery tasks of the Lab."""

from typing import Final

from celery import shared_task
from celery.worker import state
from django.conf import settings
from django.utils import timezone

from controlplane import lab
from controlplane.events.task_names import REQUEUE_LAB_RUNS, RUN_LAB
from controlplane.lab.engines import HERE, SPARK
from workers.lab.sweeps import run_on_spark

# Longer than the limit of an experiment, which its child observes.
LONGEST_S: Final = settings.LAB_SECONDS + 60


@shared_task(
    name=RUN_LAB,
    # Acknowledged early: the broker would deliver a message again after an hour. The row is the
    # claim, and requeue_lab_runs finds the runs of lost workers.
    acks_late=False,
    time_limit=LONGEST_S,
    soft_time_limit=LONGEST_S,
)
def run_lab(run_id: int) -> None:
    """Execute a requested run; a repeated delivery does nothing."""
    lab.run(run_id, _worker_stops, {**HERE, SPARK: run_on_spark})


@shared_task(name=REQUEUE_LAB_RUNS)
def requeue_lab_runs() -> None:
    """Queue the runs of lost workers and messages again."""
    lab.requeue_lost(timezone.now())


def _worker_stops() -> bool:
    # Celery treats both as exit codes after a signal, and 0 is one of them.
    requested = (state.should_stop, state.should_terminate)
    return any(code is not None and code is not False for code in requested)
