"""Search in the names of objects that the actor may view; bounded per kind."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Length

from controlplane.access.roles import Actor, require_member
from controlplane.errors import Invalid
from controlplane.installation.extras import lab_values
from controlplane.lists.search.hits import MAX_PER_KIND, Hit, HitKind, match_of
from controlplane.models import Cluster, Node, Proposal, Query, Stream

# The longest text of a search, in characters.
MAX_LENGTH: Final = 100
_MOST_WORDS: Final = 8


def search_objects(actor: Actor, text: str, cluster: Cluster | None = None) -> list[Hit]:
    """Return what has all words of a text in its name, the best matches first.

    The first word can be a kind: "query taxi", "node 5", "proposal 12". Objects of `cluster` are
    before those of other clusters. Returns no hits for a text without words. Raises `Invalid` for a
    text that is too long, `Forbidden` for someone without a role.
    """
    require_member(actor)
    words = text.casefold().split()
    if len(text) > MAX_LENGTH or len(words) > _MOST_WORDS:
        raise Invalid({"text": [f"at most {_MOST_WORDS} words and {MAX_LENGTH} characters"]})
    if not words:
        return []
    hits = [
        hit for kind, search in _searches().items() for hit in _of_kind(actor, kind, search, words)
    ]
    own = cluster.slug if cluster else ""
    order = {kind: place for place, kind in enumerate(_searches())}
    hits.sort(
        key=lambda hit: (hit.match, hit.cluster != own, order[hit.kind], len(hit.name), hit.name)
    )
    return hits


def _of_kind(actor: Actor, kind: HitKind, search: "_Search", words: list[str]) -> Iterator[Hit]:
    """Yield the hits of a kind: of all words, and of the words behind the name of the kind."""
    hits = {hit.key + hit.cluster: hit for hit in search(actor, words)}
    if len(words) > 1 and words[0] in _names_of(kind):
        for hit in search(actor, words[1:]):
            hits.setdefault(hit.key + hit.cluster, hit)
    yield from hits.values()


def _names_of(kind: HitKind) -> tuple[str, str]:
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return kind, plural


def _clusters(actor: Actor, words: list[str]) -> Iterator[Hit]:
    rows = Cluster.objects.filter(_named("name", words) | _named("slug", words))
    if actor.clusters is not None:
        rows = rows.filter(pk__in=actor.clusters)
    for slug, name, state in _best(rows, words).values_list("slug", "name", "state"):
        matches = [match for text in (name, slug) if (match := match_of(text, words)) is not None]
        if matches:
            yield Hit(HitKind.CLUSTER, name, slug, min(matches), slug, name, state)


def _nodes(actor: Actor, words: list[str]) -> Iterator[Hit]:
    for row in _rows(Node, actor, words, "index"):
        yield from _hit(HitKind.NODE, row, str(row["index"]), "", words)


def _streams(actor: Actor, words: list[str]) -> Iterator[Hit]:
    for row in _rows(Stream, actor, words, "pk"):
        yield from _hit(HitKind.STREAM, row, str(row["pk"]), "", words)


def _queries(actor: Actor, words: list[str]) -> Iterator[Hit]:
    for row in _rows(Query, actor, words, "pk", "state"):
        yield from _hit(HitKind.QUERY, row, str(row["pk"]), row["state"], words)


def _proposals(actor: Actor, words: list[str]) -> Iterator[Hit]:
    """Yield the proposal with the number that is searched."""
    if len(words) != 1 or not words[0].isdecimal() or len(words[0]) > len(str(2**31)):
        return
    rows = _visible(Proposal.objects.filter(pk=int(words[0])), actor)
    for row in rows.values("pk", "state", "cluster__slug", "cluster__name"):
        row["name"] = f"Proposal {row['pk']}"
        yield from _hit(HitKind.PROPOSAL, row, str(row["pk"]), row["state"], words)


def _hit(
    kind: HitKind, row: dict[str, Any], key: str, detail: str, words: list[str]
) -> Iterator[Hit]:
    match = match_of(row["name"], words)
    if match is not None:
        yield Hit(kind, row["name"], key, match, row["cluster__slug"], row["cluster__name"], detail)


def _rows(model: Any, actor: Actor, words: list[str], *fields: str) -> Iterable[dict[str, Any]]:
    """Return the best rows of a model of clusters as dictionaries of fields."""
    rows = _visible(model.objects.filter(_named("name", words)), actor)
    return _best(rows, words).values("name", "cluster__slug", "cluster__name", *fields)


def _visible(rows: "QuerySet[Any]", actor: Actor) -> "QuerySet[Any]":
    return rows if actor.clusters is None else rows.filter(cluster__in=actor.clusters)


def _named(field: str, words: list[str]) -> Q:
    condition = Q()
    for word in words:
        condition &= Q(**{f"{field}__icontains": word})
    return condition


def _best(rows: "QuerySet[Any]", words: list[str]) -> "QuerySet[Any]":
    """Return the rows whose names match best: whole names, then starts, then short names."""
    text = " ".join(words)
    rank = Case(
        When(name__iexact=text, then=Value(0)),
        When(name__istartswith=text, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    ranked: QuerySet[Any] = rows.annotate(rank=rank)
    return ranked.order_by("rank", Length("name"), "name", "pk")[:MAX_PER_KIND]


_Search = Callable[[Actor, list[str]], Iterator[Hit]]
_SEARCHES: Final[dict[HitKind, _Search]] = {
    HitKind.CLUSTER: _clusters,
    HitKind.NODE: _nodes,
    HitKind.STREAM: _streams,
    HitKind.QUERY: _queries,
    HitKind.PROPOSAL: _proposals,
}


@cache
def _searches() -> Mapping[HitKind, _Search]:
    """Return the searches by kind, in the order of their hits; those of the Lab are last."""
    return _SEARCHES | dict(lab_values("controlplane.lab.search:SEARCHES"))
