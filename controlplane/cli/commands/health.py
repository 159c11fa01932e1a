"""weir clusters health, decide."""

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
    values_of,
)
from controlplane.health.losses.decisions import decide
from controlplane.health.summary import Health, health_of, incident_by_id
from controlplane.models import DriverRestart, Incident

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
