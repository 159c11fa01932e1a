"""The filter text of lists: its terms, the rows that it selects, the places of faults."""

from collections.abc import Sequence

import pytest
from django.db.models import Q
from hypothesis import given
from hypothesis import strategies as st

from controlplane.models import Cluster
from controlplane.pagination.columns import FieldKind, stored
from controlplane.pagination.filter_text import (
    MAX_LENGTH,
    MAX_TERMS,
    BadFilter,
    FilterFault,
    filtered,
    terms_of,
)

COLUMNS = (
    stored("name", "name", "name"),
    stored("desired", "state", "state", kind=FieldKind.CHOICE,
           choices=lambda: ("running", "stopped")),
    stored("splits", "slots", "slots", kind=FieldKind.NUMBER),
    stored("created_at", "created", "created", kind=FieldKind.TIME),
)  # fmt: skip


def words(text: str) -> Q:
    return Q(name__icontains=text)


@pytest.fixture
def _clusters(db: None) -> None:
    for name, desired, splits in (
        ("Power north", "running", 1), ("Power south", "stopped", 2), ("Water", "running", 4),
    ):  # fmt: skip
        slug = name.replace(" ", "-").lower()
        Cluster.objects.create(slug=slug, name=name, desired=desired, splits=splits)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["Power north", "Power south", "Water"]),
        ("power", ["Power north", "Power south"]),
        ('"power n"', ["Power north"]),
        ("-power", ["Water"]),
        ("state:running", ["Power north", "Water"]),
        ("state:running,stopped slots>=2", ["Power south", "Water"]),
        ("slots>1 slots<4", ["Power south"]),
        ("slots:1,4", ["Power north", "Water"]),
        ("name=Water", ["Water"]),
        ("name:ATE", ["Water"]),
        ("-name:power -slots:7", ["Water"]),
        ("created>1h", ["Power north", "Power south", "Water"]),
        ("created<2001-01-01", []),
    ],
)
@pytest.mark.usefixtures("_clusters")
def test_all_terms_must_hold(text: str, names: Sequence[str]) -> None:
    rows = filtered(Cluster.objects.order_by("name"), text, COLUMNS, words)
    assert [row.name for row in rows] == names


@pytest.mark.parametrize(
    ("text", "fault", "place"),
    [
        ("power colour:red", FilterFault.UNKNOWN_FIELD, (6, 16)),
        ("state>running", FilterFault.OPERATOR, (0, 13)),
        ("created:2001-01-01", FilterFault.OPERATOR, (0, 18)),
        ("slots>", FilterFault.VALUE, (0, 6)),
        ("slots>many", FilterFault.VALUE, (0, 10)),
        ("slots>1e400", FilterFault.VALUE, (0, 11)),
        ("state:lost", FilterFault.VALUE, (0, 10)),
        ("created>yesterday", FilterFault.VALUE, (0, 17)),
        ("-", FilterFault.VALUE, (0, 1)),
        ('name:"power', FilterFault.QUOTE, (0, 11)),
        ('power "', FilterFault.QUOTE, (6, 7)),
        ("x" * (MAX_LENGTH + 1), FilterFault.TOO_LONG, (MAX_LENGTH, MAX_LENGTH + 1)),
        ("a " * (MAX_TERMS + 1), FilterFault.TOO_LONG, (2 * MAX_TERMS, 2 * MAX_TERMS + 2)),
    ],
)
def test_a_fault_has_its_place(text: str, fault: FilterFault, place: tuple[int, int]) -> None:
    with pytest.raises(BadFilter) as refused:
        filtered(Cluster.objects.all(), text, COLUMNS, words)
    assert refused.value.data == {"fault": fault, "start": place[0], "end": place[1]}


@given(st.text(max_size=60))
def test_any_text_has_terms_or_a_fault(text: str) -> None:
    """Terms are in order, cover the text without its blanks, and never overlap."""
    fault = None
    try:
        terms = terms_of(text)
    except BadFilter as refused:
        fault, terms = refused.data, []
    if fault is not None:
        assert 0 <= fault["start"] <= fault["end"] <= len(text)
        return
    ends = [0, *(term.end for term in terms)]
    for before, term in zip(ends, terms, strict=False):
        assert before <= term.start < term.end
        assert not text[before : term.start].strip()
    assert not text[ends[-1] :].strip()
