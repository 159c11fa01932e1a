"""weir clusters health, decide, skip-batch."""

from argparse import Namespace
from typing import Any, Final

from django.utils import timezone

from controlplane.cli.actors import viewed
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_rows,
    print_sentence,
    print_table,
    values_of,
)
from controlplane.health import skipped_batches
from controlplane.health.losses.decisions import decide
from controlplane.health.stuck_batches import losses_of, stuck_batch
from controlplane.health.summary import Health, health_of, incident_by_id
from controlplane.models import DriverRestart, Incident, SkippedBatch

_COLUMNS: Final = {
    "at": ("at", "text"), "cause": ("cause", "text"), "batch": ("batch", "number"),
    "unread": ("unread", "number"), "detail": ("detail", "text"),
}  # fmt: skip


def show_health(given: Namespace) -> None:
    """Print progress, restarts and incidents of a cluster."""
    _, cluster = viewed(given)
    health = health_of(cluster, timezone.now())
    restarts = [_restart(row) for row in health.restarts]
    incidents = [_incident(row) for row in health.incidents]
    if given.json:
        print_json(_facts(health) | {"restarts": restarts, "incidents": incidents})
        return
    print_facts(_facts(health))
    print_rows(given, restarts, _COLUMNS, "no restart")
    for disk in health.disks:
        print_sentence(f"{disk}")
    if health.stuck is not None:
        print_sentence(f"batch {health.stuck.batch} cannot be processed: it has failed "
            f"{health.stuck.attempt.failures} times in a row: {health.stuck.cause}")  # fmt: skip
    for row in incidents:
        print_sentence(f"incident {row['id']} {row['kind']} ({row['state']}) {row['at']}")
        for text in (*row["lost"], *row["done"]):
            print_sentence(f"  {text}")
        if row["choices"]:
            print_sentence(f"  choose: {', '.join(row['choices'])}")


def decide_incident(given: Namespace) -> None:
    """Apply one of an incident's choices."""
    actor, cluster = viewed(given)
    row = decide(actor, incident_by_id(cluster, given.incident), given.choice, given.reason)
    print_answer(given, _incident(row), f"incident {row.pk} of {cluster.slug}: {row.decision}")


def _facts(health: Health) -> dict[str, Any]:
    progress = health.progress
    unknown = dict.fromkeys(("batch", "unread", "rate"))
    return {
        "cluster": health.cluster.slug,
        "state": health.cluster.state,
        "detail": health.cluster.state_detail or None,
        **(values_of(progress, " ".join(unknown)) if progress else unknown),
        "stuck_batch": health.stuck.batch if health.stuck else None,
        "restarts_last_hour": health.last_hour,
    }


def _restart(row: DriverRestart) -> dict[str, Any]:
    moment = row.at.isoformat(timespec="seconds")
    return {"at": moment, **values_of(row, "cause batch unread exit_code detail")}


def _incident(row: Incident) -> dict[str, Any]:
    moment = row.at.isoformat(timespec="seconds")
    return {"id": row.pk, "at": moment, **values_of(row, "kind state lost done choices")}


def skip_batch(given: Namespace) -> None:
    """Print the losses of skipping the stuck batch; skip it if --batch names it."""
    actor, cluster = viewed(given)
    if given.batch is not None:
        _print_losses(
            _skipped(skipped_batches.skip(actor, cluster, given.batch, given.reason)), given
        )
        return
    batch = stuck_batch(cluster)
    if batch is None:
        print_answer(given, None, "no batch fails again and again")
        return
    losses, attempt = losses_of(cluster, batch.attempt), batch.attempt
    facts = {
        **values_of(attempt, "batch failures start", stop="end"),
        "total": losses.total,
        "records": dict(losses.records),
        "transfers": len(losses.transfers),
        "cause": batch.cause or None,
        "skip_requested": batch.skipped is not None,
    }
    _print_losses(facts, given)
    if not given.json:
        print_sentence(f"to lose these records: --batch {batch.batch} --reason WHY")


def _print_losses(facts: dict[str, Any], given: Namespace) -> None:
    if given.json:
        print_json(facts)
        return
    print_facts({name: value for name, value in facts.items() if name != "records"})
    rows = [[name, count] for name, count in facts["records"].items()]
    print_table({"stream": "name", "records lost": "number"}, rows, "no records")


def _skipped(row: SkippedBatch) -> dict[str, Any]:
    return {
        **values_of(row, "batch failures start stop total records"),
        "transfers": len(row.transfers),
        **values_of(row, "reason by"),
        "asked_at": row.asked_at.isoformat(timespec="seconds"),
        "done_at": row.done_at.isoformat(timespec="seconds") if row.done_at else None,
    }
