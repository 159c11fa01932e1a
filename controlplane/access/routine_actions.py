"""Repeated actions of users: beyond a number per hour they are counted, not logged one by one.

A program that submits queries every second would fill the audit log: 7,000 entries per hour, in
which nobody sees what people did. The first of an hour have an entry each, and the others one entry
with their number when the hour is over. Equal are entries with the same content; of what programs
do all the time those with the same action on a cluster, and of what anybody may do, or what is
refused to anybody, those with the same action.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, RoutineActions

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
