"""Entries of the audit log, written in the transaction of the change, and their lists.

Actions that users repeat are counted beyond a number per hour, and not logged one by one: a program
that submits queries every second would fill the audit log with 7,000 entries per hour, in which
nobody sees what people did. The first of an hour have an entry each, and the others one entry with
their number when the hour is over. Equal are entries with the same content; of what programs do all
the time those with the same action on a cluster, and of what anybody may do, or what is refused to
anybody, those with the same action.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from controlplane.access.idempotency import sign_claim
from controlplane.access.roles import ADMIN, Actor
from controlplane.models import AuditEntry, Cluster, RoutineActions
from controlplane.pagination.columns import FieldKind, ListColumn, stored
from controlplane.pagination.filter_text import MAX_LENGTH
from controlplane.pagination.listing import Filters, Listing, selected, text_filter

REFUSED: Final = "access.refused"
# Actions about authentication and refusals: their names begin with these words.
AUTHENTICATION: Final = (
    "access", "login", "logout", "password", "second_factor", "session", "token",
)  # fmt: skip
_AUTHENTICATION: Final = Q(
    *((f"action__{how}", f"{word}{end}") for word in AUTHENTICATION
      for how, end in (("exact", ""), ("startswith", "."))),
    _connector=Q.OR,
)  # fmt: skip


def record(
    actor: Actor,
    action: str,
    subject: str,
    *,
    cluster: Cluster | None = None,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    seal: str = "",
) -> None:
    """Write one entry; a bulk request gets one entry.

    Equal actions of a user beyond a number per hour are counted instead (`routine_actions`).
    """
    sign_claim(actor.request)
    content = {"seal": seal, "reason": reason, "before": before, "after": after}
    if is_counted(actor, action, subject, cluster, content):
        return
    AuditEntry.objects.create(
        at=timezone.now(),
        actor=actor.name,
        address=actor.address,
        cluster=cluster,
        action=action,
        object=subject[:200],
        request=actor.request[:40],
        seal=seal,
        reason=reason,
        before=dict(before or {}),
        after=dict(after or {}),
    )


def record_refusal(
    actor: Actor, label: str, *, cluster: Cluster | None = None, reason: str = ""
) -> None:
    """Record a request that a user may not make; `reason`: the message to the client.

    Anonymous clients have no entry.
    """
    if isinstance(actor.user, User):
        # The disk is full or the database locked: the request is refused all the same.
        with suppress(OperationalError), transaction.atomic():
            record(actor, REFUSED, label, cluster=cluster, reason=reason)


# Who acts: a user, also by a script with a token, or a component of Weir.
_USER, _WEIR = "user", "weir"


def _is_by(_cluster: object, _lookup: str, kind: str) -> Q:
    by_user = Q(actor__in=User.objects.values("username"))
    return by_user if kind == _USER else ~by_user


def _cluster(entry: AuditEntry) -> str:
    return entry.cluster.slug if entry.cluster is not None else ""


COLUMNS: Final = (
    stored("id"),
    stored("at", "time of the entry", "at", kind=FieldKind.TIME, place=1),
    stored("actor", "name of the user or component", "who", place=2),
    ListColumn(name="by", about="kind of the actor", term="by", kind=FieldKind.CHOICE,
               condition=_is_by, choices=lambda: (_USER, _WEIR)),
    stored("address", type=str | None),
    stored("cluster", "slug of the cluster", "cluster", value=_cluster, stored="cluster__slug",
            in_api=False),
    stored("action", "action, for example proposal.approve", "action", place=3),
    stored("object", "object of the action", "on", place=4),
    stored("reason", "reason", "why", place=5),
    stored("request", "id of the request", "request"),
    stored("seal", "fingerprint of a proposal", "seal"),
    stored("before", type=dict[str, Any]),
    stored("after", type=dict[str, Any]),
    stored("sequence", "place in the hash chain, null for seconds after the change"),
    stored("hash", "its link in the hash chain"),
)  # fmt: skip


@dataclass(frozen=True)
class AuditFilters(Filters):
    """Filters of the list: cluster is a slug, "" for all; reader: None for Weir itself.

    filter: a text with terms of COLUMNS.
    """

    text: str = text_filter("q")
    cluster: str = text_filter("cluster", 40)
    action: str = text_filter("action", 60)
    request: str = text_filter("request", 40)
    filter: str = text_filter("filter", MAX_LENGTH)
    reader: Actor | None = None


def audit_listing(filters: AuditFilters) -> Listing[AuditEntry, AuditEntry]:
    """Return the entries, newest first. Raises `BadFilter`."""
    entries: QuerySet[AuditEntry] = AuditEntry.objects.select_related("cluster")
    if filters.reader is not None:
        entries = visible_entries(entries, filters.reader)
    entries = selected(entries, filters, COLUMNS, _mentions)
    return Listing(entries, ("-at", "-pk"), partial(_shown, filters.reader), filters)


def _mentions(word: str) -> Q:
    names = ("actor", "action", "object", "reason")
    return Q(*((f"{name}__icontains", word) for name in names), _connector=Q.OR)


def visible_entries(entries: QuerySet[AuditEntry], reader: Actor) -> QuerySet[AuditEntry]:
    """Return the entries that a reader may see.

    These are the entries of visible clusters. Those about authentication are for admins of all
    clusters and the person concerned.
    """
    if reader.clusters is not None:
        entries = entries.filter(cluster__in=reader.clusters)
    if reader.is_admin:
        return entries
    concerned = Q(actor=reader.name) | Q(object=f"user {reader.name}")
    return entries.filter(~_AUTHENTICATION | concerned)


def _shown(reader: Actor | None, rows: Sequence[AuditEntry]) -> list[AuditEntry]:
    """Blank the addresses of others, except for admins of the entry's cluster."""
    for row in rows:
        if reader and row.actor != reader.name and not reader.may(ADMIN, row.cluster_id):
            row.address = ""
    return list(rows)


# What programs do all the time; decisions, changes of rights and settings are never among them.
ROUTINE: Final = frozenset({"query.submit", "query.end", "dead_letters.replay"})
# First words of actions that need no role on the object: who may log in could fill the log.
_BY_ANYBODY: Final = frozenset(
    {"access", "attached", "login", "logout"}
    | {"password", "second_factor", "session", "token", "view"}
)
PERIOD: Final = timedelta(hours=1)
# Entries of its own that an action has per actor and hour.
LOGGED: Final = 20


def is_counted(
    actor: Actor, action: str, subject: str, cluster: Cluster | None, content: Mapping[str, Any]
) -> bool:
    """Count an action of a user; return True if it needs no entry of its own.

    `content`: what else the entry has.
    """
    if not isinstance(actor.user, User):
        return False
    same: list[Any] = [actor.name, action]
    if action.partition(".")[0] in _BY_ANYBODY:
        cluster = None
    else:
        same += [actor.token, cluster and cluster.pk]
        is_routine = action in ROUTINE and actor.token is not None
        same += [] if is_routine else [subject, content]
    text = json.dumps(same, cls=DjangoJSONEncoder, sort_keys=True)
    now = timezone.now()
    key = {
        "key": hashlib.sha256(text.encode()).hexdigest(),
        "period": now.replace(minute=0, second=0, microsecond=0),
    }
    rows = RoutineActions.objects.filter(**key)
    if not _add(rows, subject, now):
        try:
            with transaction.atomic():
                RoutineActions.objects.create(
                    **key, actor=actor.name, token=actor.token, action=action, cluster=cluster,
                    address=actor.address, count=1, first_at=now, last_at=now,
                    last_object=subject[:200],
                )  # fmt: skip
        except IntegrityError:
            # Another request has created the row meanwhile.
            _add(rows, subject, now)
        else:
            return False
    return rows.values_list("count", flat=True).get() > LOGGED


def _add(rows: QuerySet[RoutineActions], subject: str, now: datetime) -> bool:
    changed = rows.update(count=F("count") + 1, last_at=now, last_object=subject[:200])
    return changed == 1
