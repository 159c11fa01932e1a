"""The way of a new cluster to its first results, each step closed by what was measured."""

from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from controlplane.models import Cluster, ClusterHealth

# What closes a step, its title, and what it is about.
_STEPS: Final = (
    ("stream", "Declare a stream", "A sample file proposes its columns."),
    ("records", "Send records", "By a command with a token, or as a file, on the stream's page."),
    ("query", "Write a query", "On the columns of the stream; Preview shows its results."),
    ("results", "See results", "They come with the first micro-batch that has records for it."),
)  # fmt: skip


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
    health: ClusterHealth | None = getattr(cluster, "health", None)
    return health is not None and bool(health.total or health.unread)


def first_steps(cluster: Cluster) -> list[FirstStep]:
    """Return the steps to the first results of a cluster, none once it has results."""
    if cluster.demo or cluster.queries.filter(latency_ms__gt=0).exists():
        return []
    stream = cluster.streams.order_by("pk").first()
    query = cluster.queries.order_by("pk").first()
    done = {
        "stream": stream is not None,
        "records": has_records(cluster),
        "query": query is not None,
        "results": False,
    }
    urls = {"stream": reverse("stream-new", args=[cluster.slug])}
    if stream is not None:
        urls["records"] = f"{reverse('stream', args=[cluster.slug, stream.pk])}#send"
        urls["query"] = f"{reverse('query-new', args=[cluster.slug])}?streams={stream.name}"
    if query is not None:
        urls["results"] = reverse("query", args=[cluster.slug, query.pk])
    following = next(code for code, is_done in done.items() if not is_done)
    return [
        FirstStep(
            code, title, about,
            "done" if done[code] else "next" if code == following else "waits",
            "" if done[code] else urls.get(code, ""),
        )
        for code, title, about in _STEPS
    ]  # fmt: skip
