"""Tasks of the Lab."""

from celery import shared_task
from celery.worker import state
from django.utils import timezone

from controlplane import lab
from controlplane.task_names import REQUEUE_LAB_RUNS, RUN_LAB

# Nothing else waits behind an experiment; past a day it is most likely a slip of the keyboard.
LONGEST_S = 24 * 3600


@shared_task(
    name=RUN_LAB,
    # The row is the claim, and requeue_lab_runs finds the runs of lost workers: the broker would
    # deliver a message that is held back for hours again and again.
    acks_late=False,
    time_limit=LONGEST_S,
    soft_time_limit=LONGEST_S,
)
def run_lab(run_id: int) -> None:
    """Execute a requested run; a second delivery finds it claimed and does nothing."""
    lab.run(run_id, stopping=_worker_stops)


@shared_task(name=REQUEUE_LAB_RUNS)
def requeue_lab_runs() -> None:
    """Requeue the runs whose worker or whose message was lost."""
    lab.requeue_lost(timezone.now())


def _worker_stops() -> bool:
    # Both are exit codes once somebody asked, and 0 is one of them.
    asked = (state.should_stop, state.should_terminate)
    return any(code is not None and code is not False for code in asked)
