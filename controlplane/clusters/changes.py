"""Changes of a cluster with an audit entry: start and stop, master, partitions, limits, log."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require, require_operator
from controlplane.errors import Conflict, Invalid
from controlplane.events.publish import announce, event
from controlplane.models import Cluster
from controlplane.wire.errors import BadLogUrl
from controlplane.wire.log.check import check_log
from controlplane.wire.redaction import without_password

MAX_PARTITIONS = 256
# What `set_details` sets, and the limits of a micro-batch that operators may change.
DETAILS = ("name", "description", "nu", "alpha", "trigger_ms")
LIMITS = ("max_records", "max_batch_mb")


@transaction.atomic
def change_fields(
    actor: Actor, cluster: Cluster, action: str, values: Mapping[str, Any], reason: str = ""
) -> bool:
    """Save changed fields and write an audit entry; return True if a value has changed.

    Raises `Invalid`.
    """
    cluster.refresh_from_db(from_queryset=Cluster.objects.select_for_update())
    before = {name: getattr(cluster, name) for name in values}
    if before == dict(values):
        return False
    for name, value in values.items():
        setattr(cluster, name, value)
    others = {field.name for field in Cluster._meta.fields} - values.keys()  # noqa: SLF001 - Django's public name
    try:
        cluster.clean_fields(exclude=others)
    except ValidationError as refusal:
        raise Invalid(refusal.message_dict) from refusal
    cluster.save(update_fields=list(values))
    old, new, slug = _public(before), _public(values), cluster.slug
    audit.record(actor, action, slug, cluster=cluster, reason=reason, before=old, after=new)
    return True


def _public(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for the audit log, without the password of the log."""
    return {
        name: without_password(value) if name == "log_url" else value
        for name, value in values.items()
    }


@transaction.atomic
def _change(
    actor: Actor, cluster: Cluster, action: str, values: Mapping[str, Any], reason: str, text: str
) -> Cluster:
    require_operator(actor, cluster)
    if change_fields(actor, cluster, f"cluster.{action}", values, reason):
        state = {"state": values["desired"]} if "desired" in values else {}
        announce(cluster.pk, event("state", text, **state))
    return cluster


@transaction.atomic
def set_details(
    actor: Actor, cluster: Cluster, values: Mapping[str, Any], reason: str = ""
) -> Cluster:
    """Set some of `DETAILS`; a new trigger interval takes effect with the next start.

    Raises `Forbidden` unless the actor is an admin, `Invalid`.
    """
    require(actor, ADMIN, cluster)
    if unknown := {name: ["Cannot be changed here"] for name in values if name not in DETAILS}:
        raise Invalid(unknown)
    change_fields(actor, cluster, "cluster.change", values, reason)
    return cluster


def start(actor: Actor, cluster: Cluster, reason: str = "") -> Cluster:
    """Request that the application runs; idempotent. Raises `Forbidden`."""
    desired = {"desired": Cluster.Desired.RUNNING}
    return _change(actor, cluster, "start", desired, reason, f"start asked by {actor.name}")


def stop(actor: Actor, cluster: Cluster, reason: str = "") -> Cluster:
    """Request that the application stops; a start resumes its queries. Raises `Forbidden`."""
    desired = {"desired": Cluster.Desired.STOPPED}
    return _change(actor, cluster, "stop", desired, reason, f"stop asked by {actor.name}")


def set_master(actor: Actor, cluster: Cluster, master: str, reason: str = "") -> Cluster:
    """Set the Spark master of a cluster; a running application is restarted on it.

    Raises `Forbidden` unless the actor is an admin, `Invalid` unless the site allows the master.
    """
    require(actor, ADMIN, cluster)
    values = {"master": master.strip()}
    text = f"{actor.name} runs it on {values['master']}"
    return _change(actor, cluster, "master", values, reason, text)


def check_partitions(actor: Actor, cluster: Cluster, partitions: int) -> None:
    """Raise unless the cluster is stopped and the number is possible.

    Raises `Forbidden`, `Invalid`, `Conflict`.
    """
    require_operator(actor, cluster)
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise Invalid({"partitions": [f"Must be from 1 to {MAX_PARTITIONS}"]})
    stopped = (Cluster.Desired.STOPPED, Cluster.State.STOPPED)
    if (cluster.desired, cluster.state) != stopped:
        raise Conflict("not_stopped", f"{cluster.name} is not stopped: stop it first")


def set_partitions(
    actor: Actor, cluster: Cluster, partitions: int | None, reason: str = ""
) -> Cluster:
    """Store the partitions of new checkpoints, None for the number of cores of the master.

    Raises `Forbidden`.
    """
    text = f"{cluster.name}: partitions {partitions}"
    return _change(actor, cluster, "partitions", {"partitions": partitions}, reason, text)


def set_batch_limits(
    actor: Actor, cluster: Cluster, limits: Mapping[str, int], reason: str = ""
) -> Cluster:
    """Set limits of a cluster's micro-batches: `max_records`, `max_batch_mb` (MiB), or both.

    A running application is restarted. Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, cluster)
    unknown = {name: ["Is not a limit of micro-batches"] for name in limits if name not in LIMITS}
    if unknown:
        raise Invalid(unknown)
    text = ", ".join(f"{name} {value}" for name, value in limits.items())
    return _change(actor, cluster, "batch_limits", limits, reason, f"{cluster.name}: {text}")


def check_log_url(url: str, slug: str) -> None:
    """Connect to a log that is not the site's Redis. Raises `Invalid` with the reason."""
    try:
        if url:
            check_log(url, slug)
    except BadLogUrl as bad:
        raise Invalid({"log_url": [str(bad)]}) from None


def set_log(actor: Actor, cluster: Cluster, url: str, limit_mb: int, reason: str = "") -> Cluster:
    """Set the log's URL (empty: the site's Redis) and its limit of unread MiB.

    The URL can change only while the cluster is stopped: windows start again in another log, and
    unread records of the old one stay unread. Weir's processes connect to the URL. Raises
    `Forbidden` unless the actor is an admin, `Invalid`, `Conflict`.
    """
    require(actor, ADMIN, cluster)
    url = url.strip()
    if url != cluster.log_url:
        _require_stopped(cluster)
        # Before the transaction, which would keep the cluster locked meanwhile.
        check_log_url(url, cluster.slug)
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update().get(pk=cluster.pk)
        if url != cluster.log_url:
            _require_stopped(cluster)
        values = {"log_url": url, "log_limit_mb": limit_mb}
        change_fields(actor, cluster, "cluster.log", values, reason)
        # Positions are valid for one log only.
        cluster.drops.update(settles=None)
    return cluster


def _require_stopped(cluster: Cluster) -> None:
    if cluster.desired != Cluster.Desired.STOPPED:
        raise Conflict(
            "running", f"Stop {cluster.slug} first: its windows start again in another log"
        )
