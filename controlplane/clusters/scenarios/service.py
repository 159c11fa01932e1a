"""The start and the end of scenarios, by operators and by time."""

import logging
from datetime import datetime, timedelta
from functools import partial

from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, Automatic, require_operator
from controlplane.clusters.scenarios import effects
from controlplane.clusters.scenarios.kinds import DEFAULT_MINUTES, KINDS, LONGEST_MINUTES
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.events.after_commit import after_commit
from controlplane.events.publish import announce, event
from controlplane.models import Cluster, Scenario
from controlplane.topology.versions import retry

logger = logging.getLogger(__name__)


def start_scenario(
    actor: Actor, cluster: Cluster, kind: str, *, minutes: int = DEFAULT_MINUTES,
    node: int | None = None,
) -> Scenario:  # fmt: skip
    """Start a scenario on a demo cluster for so many minutes.

    `node`: the index of the node that it is about, if it is about one; None: the first with tasks.
    Raises `Forbidden`, `NotFound` for an unknown kind, `Invalid` (minutes), and `Conflict`:
    not_a_demo, not_running, scenario_active, no_such_node, node_inactive, no_stream.
    """
    require_operator(actor, cluster)
    _require(cluster, kind, minutes)
    try:
        return _start(actor, cluster, kind, timedelta(minutes=minutes), node)
    except IntegrityError:
        text = f"{KINDS[kind].title} is in effect already: end it first"
        raise Conflict("scenario_active", text, {"kind": kind}) from None


def _require(cluster: Cluster, kind: str, minutes: int) -> None:
    if kind not in KINDS:
        raise NotFound("scenario", kind[:40])
    if not cluster.demo:
        text = f"{cluster.name} is not a cluster of a demonstration: scenarios disturb demos only"
        raise Conflict("not_a_demo", text)
    if cluster.desired != Cluster.Desired.RUNNING:
        raise Conflict("not_running", f"{cluster.name} does not run: start it first")
    if not 1 <= minutes <= LONGEST_MINUTES:
        raise Invalid({"minutes": [f"Must be from 1 to {LONGEST_MINUTES}"]})


@retry
def _start(
    actor: Actor, cluster: Cluster, kind: str, length: timedelta, node: int | None
) -> Scenario:
    cluster.refresh_from_db(fields=["routing_version", "slots"])
    index = effects.node_of(cluster, node).index if KINDS[kind].needs_node else None
    effect, now = effects.planned_effect(cluster, kind, index), timezone.now()
    row = Scenario(
        cluster=cluster, kind=kind, started_at=now, ends_at=now + length, started_by=actor.name,
        node=effect.node, factors=dict(effect.factors), before=dict(effect.before),
    )  # fmt: skip
    with transaction.atomic():
        row.save()
        effects.begin_effect(actor, row, effect.actions)
        _announce_start(actor, row)
    return row


def _announce_start(actor: Actor, row: Scenario) -> None:
    cluster, kind = row.cluster, row.kind
    after_commit("inject the fault of a node", partial(effects.inject, row))
    audit.record(
        actor, "scenario.start", f"{cluster.slug}/{kind}", cluster=cluster,
        after={"node": row.node, "ends_at": row.ends_at.isoformat()},
    )  # fmt: skip
    text = f"{actor.name} started the scenario {KINDS[kind].title.lower()} on {cluster.name}"
    announce(cluster.pk, event("state", text))


def end_scenario(actor: Actor, scenario: Scenario) -> Scenario:
    """End a scenario and revert its effect. Raises `Forbidden`, and `Conflict` (scenario_ended)."""
    require_operator(actor, scenario.cluster)
    return _end(actor, scenario, timezone.now())


@transaction.atomic
def _end(actor: Actor, scenario: Scenario, now: datetime) -> Scenario:
    present = Scenario.objects.filter(pk=scenario.pk, ended_at=None)
    if not present.update(ended_at=now, ended_by=actor.name):
        raise Conflict("scenario_ended", "The scenario has ended already")
    scenario.refresh_from_db()
    cluster, title = scenario.cluster, KINDS[scenario.kind].title
    scenario.note = effects.revert(scenario)
    scenario.save(update_fields=["note"])
    audit.record(
        actor, "scenario.end", f"{cluster.slug}/{scenario.kind}", cluster=cluster,
        before={"node": scenario.node}, after={"note": scenario.note},
    )  # fmt: skip
    announce(cluster.pk, event("state", f"The scenario {title.lower()} on {cluster.name} ended"))
    return scenario


def reconcile_scenarios(now: datetime) -> None:
    """End the scenarios whose time is over; store the faults of the others again, and
    activate nodes that return.

    An error in one scenario does not affect the others.
    """
    for row in Scenario.objects.filter(ended_at=None).select_related("cluster"):
        try:
            if row.ends_at <= now:
                _end(Automatic("weir"), row, now)
            else:
                effects.inject(row)
                effects.activate_returned(row, now)
        except Exception:
            # The next cycle repeats it; faults have an end of their own.
            logger.exception("scenario %s of %s", row.pk, row.cluster)
