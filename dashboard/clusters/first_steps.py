"""The way of a new cluster to its first results, each step closed by what was measured."""

from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, Q, Subquery
from django.urls import reverse
from django.utils.http import urlencode

from controlplane.models import Cluster, ClusterHealth, Query, Stream

# What closes a step, its title, and what it is about.
_STEPS: Final = (
    ("stream", "Declare a stream", "A sample file proposes its columns."),
    ("query", "Write a query", "On the columns of the stream; it reads records that arrive later."),
    ("records", "Send records", "By a command with a token, or as a file, on the stream's page."),
    ("results", "See results", "They come with the first micro-batch that has records for it."),
)  # fmt: skip
# A single batch may pass before its latency is measured.
_COMPUTED: Final = Q(latency_ms__gt=0) | Q(state_bytes__gt=0)
_ARRIVED: Final = Q(total__gt=0) | Q(unread__gt=0)


@dataclass(frozen=True)
class FirstStep:
    """A step; `state`: done, next or waits. `url`: where it is done, "" while it waits."""

    code: str
    title: str
    about: str
    state: str
    url: str = ""


def has_records(cluster: Cluster) -> bool:
    """Return True if records have ever arrived in the log of a cluster."""
    return ClusterHealth.objects.filter(_ARRIVED, cluster=cluster).exists()


def first_steps(cluster: Cluster) -> list[FirstStep]:
    """Return the steps to the first results of a cluster, none once it has results."""
    if cluster.demo:
        return []
    streams = Stream.objects.filter(cluster=cluster).order_by("pk").values("pk", "name")[:1]
    queries = Query.objects.filter(cluster=cluster)
    logs = ClusterHealth.objects.filter(cluster=cluster)
    stream, name, arrived, query, has_results = Cluster.objects.values_list(
        Subquery(streams.values("pk")),
        Subquery(streams.values("name")),
        Exists(logs.filter(_ARRIVED)),
        Subquery(queries.order_by("pk").values("pk")[:1]),
        Exists(queries.filter(_COMPUTED)),
    ).get(pk=cluster.pk)
    if has_results:
        return []
    done = {
        "stream": stream is not None,
        "query": query is not None,
        "records": arrived,
        "results": False,
    }
    urls = {"stream": reverse("stream-new", args=[cluster.slug])}
    if stream is not None:
        urls["records"] = f"{reverse('stream', args=[cluster.slug, stream])}#send"
        urls["query"] = (
            f"{reverse('query-new', args=[cluster.slug])}?{urlencode({'streams': name})}"
        )
    if query is not None:
        urls["results"] = reverse("query", args=[cluster.slug, query])
    following = next(code for code, is_done in done.items() if not is_done)
    return [
        FirstStep(
            code, title, about,
            "done" if done[code] else "next" if code == following else "waits",
            "" if done[code] else urls.get(code, ""),
        )
        for code, title, about in _STEPS
    ]  # fmt: skip
