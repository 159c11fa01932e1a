"""What `make test` leaves out is of a named part of `make nightly`."""

import pytest

from tests.support.nightly import PARTS, part_of, runs


def marked(request: pytest.FixtureRequest, *marks: pytest.MarkDecorator) -> pytest.Function:
    """Return a test with these marks, which is not run."""
    item = pytest.Function.from_parent(request.node.parent, name="test", callobj=lambda: None)
    for mark in marks:
        item.add_marker(mark)
    return item


def test_a_part_has_the_tests_that_are_marked_with_its_name(
    request: pytest.FixtureRequest,
) -> None:
    alone = marked(request, pytest.mark.nightly("spark"))
    both = marked(request, pytest.mark.nightly("spark", by_day=True))
    plain = marked(request)
    assert [runs(item, "") for item in (alone, both, plain)] == [False, True, True]
    assert [runs(item, "spark") for item in (alone, both, plain)] == [True, True, False]
    assert not any(runs(item, "lab") for item in (alone, both, plain))


def test_tests_of_both_databases_are_a_part(request: pytest.FixtureRequest) -> None:
    item = marked(request, pytest.mark.both_databases)
    assert runs(item, "")
    assert part_of(item) == "databases"


def test_a_mark_names_a_part_that_there_is(request: pytest.FixtureRequest) -> None:
    """Also by day: every run looks at the marks of all tests."""
    item = marked(request, pytest.mark.nightly("spork"))
    for part in ("", *PARTS):
        with pytest.raises(pytest.UsageError, match="spork is not a part of make nightly"):
            runs(item, part)
