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
    # The row is the claim, and tend_lab finds what a lost worker had: a message held back for
    # hours would be handed out again and again by the broker.
    acks_late=False,
    time_limit=LONGEST_S,
    soft_time_limit=LONGEST_S,
)
def run_lab(run_id: int) -> None:
    """Carry out a requested run; a second delivery finds it claimed and leaves."""
    lab.run(run_id, stopping=_worker_stops)


@shared_task(name=REQUEUE_LAB_RUNS)
def tend_lab() -> None:
    """Look after the runs whose worker or whose message was lost."""
    lab.requeue_lost(timezone.now())


def _worker_stops() -> bool:
    # Both are exit codes once somebody asked, and 0 is one of them.
    asked = (state.should_stop, state.should_terminate)
    return any(code is not None and code is not False for code in asked)
