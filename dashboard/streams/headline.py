"""The headline of the list of streams."""

from collections import Counter
from collections.abc import Mapping

from django.db.models import Count, Q
from django.urls import reverse
from django.utils import timezone

from controlplane.alerts.listing import open_alerts
from controlplane.alerts.states import TOPICS, AlertStatus, path_of, status_of, title_of
from controlplane.models import Cluster, Drop, Stream
from controlplane.numbers import counted, raised
from controlplane.records.dead_letter_list import ABOUT
from controlplane.wire.dead_letters import Reason
from dashboard.frame.headline import Headline
from dashboard.thresholds import BAD, GOOD, WARN


def list_headline(cluster: Cluster) -> Headline:
    """Return the number of streams, how many have records now, and how many have drop rules.

    The alert about their topics is first, as on the page of the cluster.
    """
    totals = Stream.objects.filter(cluster=cluster).aggregate(
        count=Count("pk"), with_records=Count("pk", filter=Q(rate__gt=0))
    )
    if not totals["count"]:
        return Headline("No stream is registered")
    dropped = Drop.objects.filter(cluster=cluster).values("stream").distinct().count()
    what = f"Records arrive on {totals['with_records']:,} of {counted(totals['count'], 'streams')}"
    rules = f"{counted(dropped, 'streams')} with drop rules" if dropped else ""
    alert = next((row for row in open_alerts([cluster.pk]) if row.subject == TOPICS), None)
    status = None if alert is None else status_of(alert, timezone.now())
    is_running = cluster.desired == Cluster.Desired.RUNNING
    if alert is not None and is_running and status is not AlertStatus.RECOVERING:
        grade = BAD if status is AlertStatus.FIRING else WARN
        link = path_of(cluster.slug, alert)
        others = "; ".join(filter(None, [what, rules]))
        title = alert.detail or title_of(TOPICS)
        return Headline(title, others, grade, link=link, link_title="Show alert")
    link = f"{reverse('streams', args=[cluster.slug])}?filter=has:drops" if dropped else ""
    return Headline(what, rules, link=link, link_title="Show drop rules" if dropped else "")


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
