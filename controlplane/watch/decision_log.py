"""Log of decisions: equal consecutive decisions are counted in one row; lists of them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from django.db.models import F, Q, Subquery

from controlplane.events.publish import announce, event
from controlplane.models import Cluster, Decision
from controlplane.pagination.columns import FieldKind, stored
from controlplane.pagination.filter_text import MAX_LENGTH
from controlplane.pagination.listing import Filters, Listing, choice_filter, selected, text_filter
from controlplane.watch.codes import CODES, STALE, is_calm
from controlplane.watch.decision import LoopDecision
from controlplane.watch.loops import all_loops

# The retention of samples of a minute.
KEPT: Final = timedelta(days=30)
# Codes that are always published.
NEWS: Final = ("silent", "no_planner", "failed", "drifted", "recommended", "acted", "redirected")
# A staleness that no cycle has read for this time starts again.
UNSEEN: Final = timedelta(seconds=60)
CODE_NAMES = tuple(CODES)


def loop_names() -> tuple[str, ...]:
    """Return the names of all loops."""
    return tuple(loop.name for loop in all_loops())


def last_decision(cluster: Cluster, loop: str) -> Decision | None:
    """Return the newest decision of a loop."""
    rows = Decision.objects.filter(cluster=cluster, loop=loop)
    return rows.order_by("-last_at", "-id").first()


def last_request(cluster: Cluster, loop: str) -> datetime | None:
    """Return when a loop requested its last plan, None before the first one."""
    rows = Decision.objects.filter(cluster=cluster, loop=loop, code="asked").order_by("-last_at")
    return rows.values_list("first_at", flat=True).first()


def record_decision(
    cluster: Cluster, loop: str, outcome: LoopDecision, now: datetime, last: Decision | None = None
) -> Decision:
    """Log a decision, in the row of the last one if code and proposal are equal."""
    last = last or last_decision(cluster, loop)
    if last is not None:
        # Concurrent decisions are ordered by their time of writing.
        now = max(now, last.last_at)
    figures = {
        "number": outcome.number,
        "limit": outcome.limit,
        "unit": outcome.unit if outcome.number is not None else "",
        "text": outcome.text[:300],
        "last_at": now,
    }
    if last is not None and _continues(last, outcome, now):
        Decision.objects.filter(pk=last.pk).update(count=F("count") + 1, **figures)
        last.refresh_from_db()
        return last
    row = Decision.objects.create(
        cluster=cluster,
        loop=loop,
        code=outcome.code,
        proposal_id=outcome.proposal,
        first_at=now,
        **figures,
    )
    # Published: a problem, its end, or an action; a figure that varies around its limit once.
    was_calm = last is None or is_calm(last.code)
    if outcome.code in NEWS or was_calm != is_calm(outcome.code):
        text = f"{loop}: {outcome.text}"
        announce(cluster.pk, event("decision", text, pk=row.pk, state=row.code))
    return row


def _continues(last: Decision, outcome: LoopDecision, now: datetime) -> bool:
    """Return whether a decision is counted in the row of the last one.

    A ladder must be stale for a time, in which cycles have read it: after a gap it starts again.
    """
    is_held = outcome.code != STALE or now - last.last_at <= UNSEEN
    return is_held and (last.code, last.proposal_id) == (outcome.code, outcome.proposal)


def prune(now: datetime) -> int:
    """Delete expired decisions; return how many."""
    old = Decision.objects.filter(last_at__lt=now - KEPT)
    return old.order_by().delete()[0]


COLUMNS: Final = (
    stored("id"),
    stored("loop", "watch loop", "loop", kind=FieldKind.CHOICE, choices=loop_names,
            place=1),
    stored("code", "reason of the decision", "reason", kind=FieldKind.CHOICE,
            choices=lambda: CODE_NAMES),
    stored("number", "measured number", "number", kind=FieldKind.NUMBER),
    stored("limit", "what the number was compared with"),
    stored("unit", "unit of number and limit: share, ratio, ms, s, nodes, moves or records/s"),
    stored("text", "words of the decision", "text", place=4),
    stored("proposal", "number of its proposal", value=attrgetter("proposal_id"),
            stored="proposal_id", term="proposal", kind=FieldKind.NUMBER, in_file="proposal_id"),
    stored("first_at", "time of the first of them"),
    stored("last_at", "time of the last of them", "at", kind=FieldKind.TIME, place=2),
    stored("count", "number of equal decisions in a row", "times", kind=FieldKind.NUMBER,
            place=3),
)  # fmt: skip


@dataclass(frozen=True)
class DecisionFilters(Filters):
    """Filters of the list; "" selects all; filter is a text with terms of COLUMNS."""

    loop: str = choice_filter("loop", loop_names)
    code: str = choice_filter("code", lambda: CODE_NAMES)
    filter: str = text_filter("filter", MAX_LENGTH)


def last_decisions(cluster: Cluster) -> dict[str, Decision | None]:
    """Return the last decision of each loop, in the order of the loops; None before the first."""
    rows = Decision.objects.filter(cluster=cluster).order_by("-last_at", "-id")
    newest = [Subquery(rows.filter(loop=name).values("pk")[:1]) for name in loop_names()]
    # One statement for all loops: each is a search in the index.
    ids = Cluster.objects.filter(pk=cluster.pk).values_list(*newest).get()
    known = Decision.objects.in_bulk([pk for pk in ids if pk is not None])
    return {name: known.get(pk) for name, pk in zip(loop_names(), ids, strict=True)}


def decisions_listing(
    cluster: Cluster, filters: DecisionFilters, order: str = "-last_at"
) -> Listing[Decision, Decision]:
    """Return the decisions, newest first; `order`: -first_at for cursors, as it never changes.

    Raises `BadFilter`.
    """
    decisions = Decision.objects.filter(cluster=cluster)
    decisions = selected(decisions, filters, COLUMNS, lambda word: Q(text__icontains=word))
    return Listing(decisions, (order, "-pk"), list, filters)
