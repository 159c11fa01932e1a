"""The headline of the list of streams."""

from collections import Counter
from collections.abc import Mapping

from django.db.models import Count, Q, Sum
from django.urls import reverse
from django.utils import timezone

from controlplane.alerts.listing import open_alerts
from controlplane.alerts.states import TOPICS, AlertStatus, path_of, status_of, title_of
from controlplane.models import Cluster, Drop, Stream
from controlplane.numbers import compact, counted, raised
from controlplane.records.dead_letter_list import ABOUT
from controlplane.wire.dead_letters import Reason
from dashboard.frame.headline import Headline
from dashboard.thresholds import BAD, GOOD, WARN


def list_headline(cluster: Cluster) -> Headline:
    """Return the number of streams, their records/s, and how many have drop rules.

    The alert about their topics is first, as on the page of the cluster.
    """
    totals = Stream.objects.filter(cluster=cluster).aggregate(
        count=Count("pk"), total=Sum("rate"), silent=Count("pk", filter=Q(rate=None) | Q(rate=0))
    )
    if not totals["count"]:
        return Headline("No stream is registered")
    dropped = Drop.objects.filter(cluster=cluster).values("stream").distinct().count()
    what = f"{counted(totals['count'], 'streams')}, {compact(totals['total'] or 0.0)} records/s"
    parts = [
        f"{counted(totals['silent'], 'streams')} without records" if totals["silent"] else "",
        f"{counted(dropped, 'streams')} with drop rules" if dropped else "",
    ]
    why = "; ".join(filter(None, parts))
    alert = next((row for row in open_alerts([cluster.pk]) if row.subject == TOPICS), None)
    status = None if alert is None else status_of(alert, timezone.now())
    is_running = cluster.desired == Cluster.Desired.RUNNING
    if alert is not None and is_running and status is not AlertStatus.RECOVERING:
        grade = BAD if status is AlertStatus.FIRING else WARN
        link = path_of(cluster.slug, alert)
        others = "; ".join(filter(None, [what, *parts]))
        title = alert.detail or title_of(TOPICS)
        return Headline(title, others, grade, link=link, link_title="Show alert")
    link = f"{reverse('streams', args=[cluster.slug])}?filter=has:drops" if dropped else ""
    return Headline(what, why, link=link, link_title="Show drop rules" if dropped else "")


def dead_letters_headline(counts: Mapping[int, Mapping[Reason, int]], *, is_kept: bool) -> Headline:
    """Return how many records became dead letters, by reason.

    `counts`: by stream and reason; `is_kept`: whether Weir still keeps some of them.
    """
    by_reason: Counter[Reason] = Counter()
    for reasons in counts.values():
        by_reason.update(reasons)
    if not by_reason.total():
        return Headline("Every record was accepted", "No record became a dead letter so far.", GOOD)
    what = f"{counted(by_reason.total(), 'records')} of {counted(len(counts), 'streams')} were not"
    why = "; ".join(f"{ABOUT[reason]}: {count:,}" for reason, count in by_reason.most_common())
    kept = "" if is_kept else " They were appended again, deleted, or replaced by newer ones."
    return Headline(f"{what} accepted", f"{raised(why)}.{kept}", WARN if is_kept else "")
