"""Celery tasks: each takes an id, calls a service, and ignores deleted rows."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from controlplane import watch as watch_loops
from controlplane.access import audit_chain
from controlplane.alerts import evaluation
from controlplane.background import ingestion
from controlplane.background import reconcile as reconciliation
from controlplane.background.retention.kinds import prune_all
from controlplane.background.table_statistics import update_statistics
from controlplane.cluster_spec import following
from controlplane.clusters import demo
from controlplane.clusters.scenarios import reconcile_scenarios
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.events.task_names import (
    ADVANCE,
    BROWSE_SOURCE,
    COMPUTE_PROPOSAL,
    COMPUTE_REACHABLE,
    COMPUTE_TRADE,
    END_QUERIES,
    FIT_FORECASTERS,
    FOLLOW_DESCRIPTIONS,
    PLACE,
    PREVIEW_QUERY,
    PRUNE,
    RECONCILE_EXECUTIONS,
    RECONCILE_ROUTING,
    RECONCILE_SCENARIOS,
    RECORD_COSTS,
    RECORD_KEY_SKEW,
    REQUEUE_PROPOSALS,
    REVIEW_PROPOSAL,
    REVIEW_PROPOSALS,
    ROLL_UP,
    SEAL_AUDIT,
    UPDATE_FINALITY,
    UPDATE_LEDGER,
    UPDATE_STATISTICS,
    UPDATE_VIEWS,
    VERIFY_AUDIT,
    WATCH,
)
from controlplane.planners.admission import fitting
from controlplane.planners.partitioning import skew_history
from controlplane.planners.placement.reachable import compute_reachable
from controlplane.planners.placement.trade import compute_trade
from controlplane.processes.runtime.beats import forget_instances, now_ms
from controlplane.proposals import computation, ledger, staleness
from controlplane.proposals.executions import progression
from controlplane.results import finality
from controlplane.results.sql import logins, schemas
from controlplane.telemetry import series
from controlplane.topology import bulk_actions, placement
from workers.preview import messages as preview_messages
from workers.preview import service as preview_service
from workers.webhooks import tasks as _webhooks  # noqa: F401 - registers its tasks

# After the last retry, the periodic tasks of executions and proposals continue.
_RETRIES: Final[dict[str, Any]] = {
    "autoretry_for": (OperationalError,),
    "retry_backoff": 1,
    "retry_backoff_max": 5,
    "max_retries": 3,
}


@shared_task(name=ADVANCE, **_RETRIES)
def advance(proposal_id: int) -> None:
    """Advance the execution of an approved proposal; a repetition changes nothing."""
    progression.advance(proposal_id)


@shared_task(name=RECONCILE_EXECUTIONS)
def reconcile_executions() -> None:
    """Queue the progression of executions that a crash may have interrupted."""
    progression.request_advances()


@shared_task(name=COMPUTE_PROPOSAL)
def compute_proposal(proposal_id: int) -> None:
    """Compute the proposal that waits longest, if a slot is free; the message only wakes."""
    del proposal_id
    computation.compute_next()


@shared_task(name=COMPUTE_REACHABLE)
def compute_reachable_measures(cluster_id: int) -> None:
    """Compute what placement of a cluster reaches."""
    compute_reachable(cluster_id)


@shared_task(name=COMPUTE_TRADE)
def compute_trade_of_moves(cluster_id: int) -> None:
    """Compute what plans for a cluster reach by their moves."""
    compute_trade(cluster_id)


@shared_task(name=PREVIEW_QUERY, acks_late=False)
def preview_query(request: str) -> None:
    """Compute the preview of a query for the process that waits for it."""
    preview_service.run(request)


@shared_task(name=BROWSE_SOURCE, acks_late=False)
def browse_source(request: str) -> None:
    """Read records of a source for the process that waits for them."""
    preview_messages.run(request)


@shared_task(name=END_QUERIES, **_RETRIES)
def end_queries(action_id: int) -> None:
    """Continue a bulk action on queries; a repetition changes nothing."""
    bulk_actions.continue_action(action_id)


@shared_task(name=REVIEW_PROPOSAL, **_RETRIES)
def review_proposal(proposal_id: int) -> None:
    """Review a computed proposal; a repetition changes nothing."""
    watch_loops.review_proposal(proposal_id)


@shared_task(
    name=PLACE,
    # For a locked or unavailable database; the beat covers further failures.
    autoretry_for=(OperationalError, Conflict),
    retry_backoff=1,
    retry_backoff_max=10,
    max_retries=5,
)
def place(cluster_id: int) -> None:
    """Place all pending queries of a cluster and remove all ending ones."""
    placement.place_pending(cluster_id)


@shared_task(name=RECONCILE_ROUTING)
def reconcile_routing() -> None:
    """Reconcile the routing of every cluster."""
    reconciliation.reconcile_all(timezone.now())


@shared_task(name=RECONCILE_SCENARIOS)
def reconcile_demo_scenarios() -> None:
    """End the scenarios of demo clusters whose time is over."""
    reconcile_scenarios(timezone.now())


@shared_task(name=PRUNE)
def prune() -> None:
    """Delete what is kept no longer."""
    prune_all(timezone.now())
    demo.renew_token()
    forget_instances(redis_client(), now_ms())


def _watch(now: datetime) -> None:
    watch_loops.watch_all(now)
    evaluation.evaluate_all(timezone.now())


def _update_views(_now: datetime) -> None:
    schemas.update_views()
    logins.review_logins()


def _roll_up(now: datetime) -> None:
    series.roll_up(now)
    ingestion.decay_idle_rates(now)


def _add_periodic(name: str, work: Callable[[datetime], object]) -> None:
    """Register a task of the beat, which calls a service with the present time."""

    @shared_task(name=name)
    def task() -> None:
        work(timezone.now())


_add_periodic(UPDATE_FINALITY, finality.update_finality)
_add_periodic(UPDATE_VIEWS, _update_views)
_add_periodic(UPDATE_LEDGER, ledger.write_entries)
_add_periodic(REVIEW_PROPOSALS, staleness.review_waiting)
_add_periodic(WATCH, _watch)
_add_periodic(FIT_FORECASTERS, fitting.fit_forecasters)
_add_periodic(RECORD_KEY_SKEW, skew_history.record_all)
_add_periodic(FOLLOW_DESCRIPTIONS, following.follow_all)
_add_periodic(RECORD_COSTS, reconciliation.record_costs)
_add_periodic(ROLL_UP, _roll_up)
_add_periodic(UPDATE_STATISTICS, lambda _: update_statistics())
_add_periodic(REQUEUE_PROPOSALS, computation.requeue_lost)
_add_periodic(SEAL_AUDIT, lambda _: audit_chain.seal())


@shared_task(name=VERIFY_AUDIT)
def verify_audit(sequence: int | None = None, noted_hash: str = "") -> None:
    """Verify the audit log, with the head that an admin noted, if there is one."""
    audit_chain.verify(None if sequence is None else (sequence, noted_hash))
