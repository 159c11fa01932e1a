"""The whole of an import, in one transaction: the cluster, its parts, its policy."""

from typing import Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from controlplane.description.document import ClusterDescription, ClusterPart, PolicyPart
from controlplane.description.errors import BadDescription
from controlplane.errors import Invalid
from controlplane.models import Cluster
from controlplane.policies.store import policy_of, update_policy
from controlplane.selectors.describing import description_of
from controlplane.services import audit, clusters
from controlplane.services.access import ADMIN, Actor, require
from controlplane.services.importing.parts import bring_nodes, bring_streams
from controlplane.services.importing.report import Imported, noted, told_at
from controlplane.services.importing.rules import bring_blackouts, bring_drops, bring_exclusions
from controlplane.services.importing.running import bring_queries
from controlplane.topology import nodes
from controlplane.wire.log import without_password

# What a checkpoint, or records that wait, depend on: not changed in passing.
_FIXED: Final = ("splits", "log_url")
# What stands for a password in an export.
HIDDEN: Final = ":***@"
_PLAIN: Final = (
    "name", "description", "nu", "alpha", "trigger_ms", "log_limit_mb", "partitions",
    "max_records", "max_batch_mb",
)  # fmt: skip


class _Undone(Exception):
    """All was tried, and nothing is to stay."""


def bring_in(
    actor: Actor, description: ClusterDescription, *, apply: bool, reason: str = ""
) -> Imported:
    """Make or complete the described cluster; without `apply` all is tried and nothing stays.

    Raises `Forbidden` for who is no admin (everywhere, where the cluster is new), and
    `BadDescription` with the place of each fault.
    """
    slug = description.cluster.slug
    known = Cluster.objects.filter(slug=slug).first()
    require(actor, ADMIN, known)
    report = Imported(slug, new=known is None, applied=apply)
    try:
        with transaction.atomic():
            _import(actor, description, known, report, reason)
            if not apply:
                raise _Undone
    except _Undone:
        pass
    return report


def _import(
    actor: Actor,
    description: ClusterDescription,
    known: Cluster | None,
    report: Imported,
    reason: str,
) -> None:
    cluster = known or _new_cluster(description.cluster)
    if known is not None:
        _change_cluster(actor, known, description.cluster, report)
    before = description_of(cluster, measures=False)
    now = timezone.now()
    bring_nodes(actor, cluster, description.nodes, report)
    bring_streams(actor, cluster, description.streams, before.streams, report)
    bring_queries(actor, cluster, description, before, report)
    bring_drops(actor, cluster, description.drops, before.drops, report)
    _policy(actor, cluster, description.policy, report, reason)
    bring_blackouts(actor, cluster, description.blackouts, before.blackouts, report, now)
    bring_exclusions(actor, cluster, description.exclusions, before.exclusions, report, now)
    if not report.changes:
        return
    counts = {
        "new": report.new,
        "created": {part: len(names) for part, names in report.created.items()},
        "changed": {part: len(names) for part, names in report.changed.items()},
    }
    audit.record(
        actor, "cluster.import", cluster.slug, cluster=cluster, reason=reason, after=counts
    )


def _new_cluster(part: ClusterPart) -> Cluster:
    cluster = Cluster(**part.model_dump())
    if HIDDEN in part.log_url:
        told = "An export leaves the password out: put it in"
        raise BadDescription({"cluster.log_url": [told]})
    with told_at("cluster"):
        _clean(cluster)
    cluster.save()
    return cluster


def _change_cluster(actor: Actor, cluster: Cluster, part: ClusterPart, report: Imported) -> None:
    stands = {name: getattr(cluster, name) for name in _FIXED}
    if part.log_url == without_password(cluster.log_url):
        stands["log_url"] = part.log_url
    faults = {
        f"cluster.{name}": ["Is another one in Weir, and is not changed by this"]
        for name, value in stands.items()
        if value != getattr(part, name)
    }
    if faults:
        raise BadDescription(faults)
    changed = [name for name in _PLAIN if getattr(cluster, name) != getattr(part, name)]
    before = {name: getattr(cluster, name) for name in changed}
    after = {name: getattr(part, name) for name in changed}
    if changed:
        for name, value in after.items():
            setattr(cluster, name, value)
        with told_at("cluster"):
            _clean(cluster)
        cluster.save(update_fields=changed)
        audit.record(
            actor, "cluster.change", cluster.slug, cluster=cluster, before=before, after=after
        )
    if cluster.slots != part.slots:
        with told_at("cluster"):
            nodes.set_count(actor, cluster, part.slots)
        changed.append("slots")
    if cluster.master != part.master:
        with told_at("cluster"):
            clusters.set_master(actor, cluster, part.master)
        changed.append("master")
    if changed:
        report.changed["cluster"] = changed


def _policy(
    actor: Actor, cluster: Cluster, part: PolicyPart, report: Imported, reason: str
) -> None:
    before = policy_of(cluster).to_json()
    with told_at("policy"):
        update_policy(actor, cluster, part.given(), reason)
    after = policy_of(cluster).to_json()
    noted(report.changed, "policy", [name for name in before if before[name] != after[name]])


def _clean(cluster: Cluster) -> None:
    try:
        cluster.full_clean()
    except ValidationError as invalid:
        raise Invalid(invalid.message_dict) from None
