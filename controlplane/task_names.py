"""Names of Celery tasks, and how they are sent without importing the workers.

place             cluster id     place pending queries, remove ending ones
compute_proposal  proposal id    compute a requested proposal
judge_proposal    proposal id    decide whether a computed proposal applies by itself
run_lab           run id         carry out a run of the Lab, on the Lab's own queue
advance           proposal id    do what comes next for an approved proposal
tend_executions   every 2 s      ask for the advance of executions that may have something to do
send_webhook      webhook id     send a webhook's messages that are due, on a queue of their own
tend_webhooks     every 5 s      ask for the sending of messages that are due
tend_ledger       every 10 s     compare what executions promised with what was measured
tend_routing      every 5 s      publish what is unpublished, drain what is stuck, heal Redis
tend_lab          every 15 s     queue anew the runs of lost workers and of lost messages
watch             every 10 s     let the watch loops look at every cluster
archive           every 2 s      move final windows from Redis to the disk, on a queue of its own
roll_up           every 10 s     10 s and 60 s samples
prune             every 5 min    samples, ended queries, old versions, sessions past their time
"""

from functools import partial
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from controlplane.after_commit import after_commit

# The lists in Redis that workers take their tasks from.
QUEUES = ("weir", "lab", "webhooks", "archive")

PLACE = "weir.place"
COMPUTE_PROPOSAL = "weir.compute_proposal"
JUDGE_PROPOSAL = "weir.judge_proposal"
WATCH = "weir.watch"
ADVANCE = "weir.advance"
TEND_EXECUTIONS = "weir.tend_executions"
SEND_WEBHOOK = "weir.send_webhook"
TEND_WEBHOOKS = "weir.tend_webhooks"
TEND_LEDGER = "weir.tend_ledger"
TEND_ROUTING = "weir.tend_routing"
RUN_LAB = "weir.run_lab"
TEND_LAB = "weir.tend_lab"
ROLL_UP = "weir.roll_up"
PRUNE = "weir.prune"
ARCHIVE = "weir.archive"


def send_on_commit(name: str, *args: Any, expires_s: float | None = None) -> None:
    """Send the task once the transaction is committed; after `expires_s` no worker takes it.

    A broker that cannot be reached is logged, not raised: the row is saved by then, and the beat's
    task finds it within seconds.
    """
    after_commit(f"send the task {name}", partial(_send, name, args, expires_s))


def queue_key(queue: str) -> str:
    """Return where in Redis the tasks of a queue wait."""
    return f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}{queue}"


def _send(name: str, args: tuple[Any, ...], expires_s: float | None) -> None:
    import_string(settings.TASK_APP).send_task(name, args=args, expires=expires_s)
