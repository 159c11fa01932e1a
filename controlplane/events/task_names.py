"""Names of Celery tasks, and how they are sent without importing the workers.

place                 cluster id   place pending queries, remove ending ones
preview_query         request      evaluate a query on the newest records of its streams
end_queries           action id    continue a bulk action on queries
compute_proposal      proposal id  compute the proposal that waits longest
compute_reachable     cluster id   compute what placement reaches, for default limits
compute_trade         cluster id   compute what plans reach by their moves, for a request
review_proposal        proposal id  review a computed proposal
run_lab               run id       execute a run of the Lab, on a queue of its own
advance               proposal id  advance the execution of a proposal
reconcile_executions  every 2 s    queue the advance of active executions
send_webhook          webhook id   send a webhook's messages that are due, on a queue of their own
send_due_webhooks     every 5 s    queue the sending of messages that are due
review_proposals      every 10 s   recompute the effects of waiting proposals
update_ledger         every 10 s   compare predicted with measured effects of executions
reconcile_scenarios   every 5 s    end scenarios whose time is over, store faults of nodes again
reconcile_routing     every 5 s    publish routing versions, place pending queries, repair Redis
requeue_lab_runs      every 15 s   queue the runs of lost workers and messages again
requeue_proposals     every 10 s   queue the proposals of lost workers and messages again
watch                 every 10 s   evaluate the watch loops and the alerts of every cluster
record_key_skew       every 10 s   the skew of the keys of split queries, from their samples
follow_descriptions   every 30 s   compare clusters with the files that they follow
record_costs          every 30 s   what queries and streams cost, for lists that sort by it
update_finality       every 2 s    up to which start the windows of every query are final
update_views          every 5 s    schemas, views and logins of results in PostgreSQL
roll_up               every 10 s   10 s and 60 s samples
update_statistics     every 60 s   the statistics by which SQLite chooses indexes
seal_audit            every 5 s    append audit entries to the hash chain
verify_audit          every hour   verify the hash chain of the audit log
prune                 every 5 min  samples, ended queries, old versions, sessions past their time
"""

from functools import partial
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from controlplane.events.after_commit import after_commit

# The lists in Redis that workers take their tasks from.
QUEUES = ("weir", "lab", "webhooks")

# The header of a task with the time at which it was sent (ms since 1970).
QUEUED_MS = "weir_queued_ms"

PLACE = "weir.place"
PREVIEW_QUERY = "weir.preview_query"
BROWSE_SOURCE = "weir.browse_source"
COMPUTE_PROPOSAL = "weir.compute_proposal"
COMPUTE_REACHABLE = "weir.compute_reachable"
COMPUTE_TRADE = "weir.compute_trade"
REVIEW_PROPOSAL = "weir.review_proposal"
WATCH = "weir.watch"
FIT_FORECASTERS = "weir.fit_forecasters"
RECORD_KEY_SKEW = "weir.record_key_skew"
FOLLOW_DESCRIPTIONS = "weir.follow_descriptions"
RECORD_COSTS = "weir.record_costs"
END_QUERIES = "weir.end_queries"
ADVANCE = "weir.advance"
RECONCILE_EXECUTIONS = "weir.reconcile_executions"
SEND_WEBHOOK = "weir.send_webhook"
SEND_DUE_WEBHOOKS = "weir.send_due_webhooks"
SEND_LINEAGE = "weir.send_lineage"
UPDATE_LEDGER = "weir.update_ledger"
REVIEW_PROPOSALS = "weir.review_proposals"
RECONCILE_SCENARIOS = "weir.reconcile_scenarios"
RECONCILE_ROUTING = "weir.reconcile_routing"
RUN_LAB = "weir.run_lab"
REQUEUE_LAB_RUNS = "weir.requeue_lab_runs"
REQUEUE_PROPOSALS = "weir.requeue_proposals"
ROLL_UP = "weir.roll_up"
UPDATE_STATISTICS = "weir.update_statistics"
PRUNE = "weir.prune"
SEAL_AUDIT = "weir.seal_audit"
VERIFY_AUDIT = "weir.verify_audit"
UPDATE_FINALITY = "weir.update_finality"
UPDATE_VIEWS = "weir.update_views"

# Periodic tasks that have next to nothing to do while there is no cluster.
OF_CLUSTERS = frozenset({
    RECONCILE_ROUTING, RECONCILE_SCENARIOS, REVIEW_PROPOSALS, UPDATE_LEDGER, REQUEUE_PROPOSALS,
    WATCH, FIT_FORECASTERS, RECORD_KEY_SKEW, RECORD_COSTS, UPDATE_FINALITY, UPDATE_VIEWS, ROLL_UP,
})  # fmt: skip


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
