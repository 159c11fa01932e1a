"""Search finds what a person may view, the best match first, within bounds."""

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Forbidden, Invalid
from controlplane.lists.search import HitKind, search_objects
from controlplane.lists.search.hits import Match, match_of
from controlplane.models import Cluster, Proposal
from tests.controlplane.api.callers import granted
from tests.support import cluster as made
from tests.support.api_world import NOW


@pytest.fixture
def by(db: None, redis_url: str) -> Actor:
    return made.actor("operator")


@pytest.fixture
def sf(by: Actor) -> Cluster:
    """Streams s0 to s5, nodes 0 to 3, queries taxi, taxi-by-hour and night-taxi."""
    cluster = made.small_cluster(by)
    made.submit(by, cluster, {"taxi-by-hour": ["s0"], "taxi": ["s0"], "night-taxi": ["s1"]})
    return cluster


def names(actor: Actor, text: str, cluster: Cluster | None = None) -> list[str]:
    return [hit.name for hit in search_objects(actor, text, cluster)]


def test_whole_names_are_before_starts_and_words(by: Actor, sf: Cluster) -> None:
    assert names(by, "taxi") == ["taxi", "taxi-by-hour", "night-taxi"]
    assert names(by, "HOUR taxi") == ["taxi-by-hour"]


def test_the_kind_narrows_the_search(by: Actor, sf: Cluster) -> None:
    assert names(by, "node 2") == ["node 2"]
    assert {hit.kind for hit in search_objects(by, "queries taxi")} == {HitKind.QUERY}
    assert names(by, "stream s3") == ["s3"]


def test_a_hit_names_its_address_and_cluster(by: Actor, sf: Cluster) -> None:
    (node,) = search_objects(by, "node 2")
    assert (node.kind, node.key, node.cluster, node.cluster_name) == ("node", "2", "sf", "SF")
    (cluster,) = search_objects(by, "sf")
    assert (cluster.kind, cluster.key, cluster.match) == ("cluster", "sf", Match.WHOLE)


def test_a_proposal_is_found_by_its_number(by: Actor, sf: Cluster) -> None:
    row = Proposal.objects.create(
        cluster=sf, planner="placement", algorithm="mms", requested_by="a", requested_at=NOW
    )
    for text in (str(row.pk), f"proposal {row.pk}"):
        assert f"Proposal {row.pk}" in names(by, text)
    assert names(by, "99999999999999999999") == []


def test_experiments_of_the_lab_are_found(by: Actor) -> None:
    hits = [hit for hit in search_objects(by, "imbalance") if hit.kind == HitKind.EXPERIMENT]
    assert hits
    assert all("/" in hit.key for hit in hits)


def test_objects_of_the_open_cluster_are_first(by: Actor, sf: Cluster) -> None:
    other = Cluster.objects.create(slug="a", name="A")
    other.nodes.create(index=2, name="node 2", capacity=1)
    assert [hit.cluster for hit in search_objects(by, "node 2", sf)] == ["sf", "a"]
    assert [hit.cluster for hit in search_objects(by, "node 2", other)] == ["a", "sf"]


def test_other_clusters_are_invisible(sf: Cluster) -> None:
    foreign = granted("admin", Cluster.objects.create(slug="nyc", name="NYC"), "foreign")
    assert names(foreign, "taxi") == []
    assert names(foreign, "node 1") == []
    assert names(foreign, "imbalance") == []
    assert names(foreign, "nyc") == ["NYC"]
    with pytest.raises(Forbidden):
        search_objects(made.actor("", "nobody"), "taxi")


def test_the_search_is_bounded(by: Actor, sf: Cluster) -> None:
    made.submit(by, sf, {f"zebra-{number}": ["s0"] for number in range(30)})
    assert len(names(by, "zebra")) == 6
    for text in ("x" * 101, "a b c d e f g h i"):
        with pytest.raises(Invalid):
            search_objects(by, text)
    assert names(by, "   ") == []


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("Taxi", "taxi", Match.WHOLE),
        ("taxi-by-hour", "taxi", Match.START),
        ("count_by_taxi", "tax count", Match.START_OF_WORD),
        ("count", "oun", Match.INSIDE),
        ("count", "taxi", None),
    ],
)
def test_matches_are_graded(name: str, text: str, match: Match | None) -> None:
    assert match_of(name, text.split()) == match
