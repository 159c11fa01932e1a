"""The headline of the list of streams."""

from django.db.models import Count, Q, Sum
from django.urls import reverse

from controlplane.models import Cluster, Drop, Stream
from dashboard.frame.headline import Headline
from dashboard.numbers import compact, counted


def list_headline(cluster: Cluster) -> Headline:
    """Return the number of streams, their records/s, and how many have drop rules."""
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
    link = f"{reverse('streams', args=[cluster.slug])}?filter=has:drops" if dropped else ""
    return Headline(what, why, link=link, link_title="Show drop rules" if dropped else "")
