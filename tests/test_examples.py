"""By day a law is tried on a tenth of its examples, by night on all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import DATABASES, databases_tried, fewer, try_fewer_examples
from tests.support.nightly import NIGHTLY


def test_a_law_is_tried_on_fewer_examples_by_day(request: pytest.FixtureRequest) -> None:
    tried = list[int]()

    @settings(max_examples=120)
    @given(number=st.integers())
    def law(number: int) -> None:
        tried.append(number)

    # Two items of one function, as of a parametrized test.
    for name in ("law[0]", "law[1]"):
        item = pytest.Function.from_parent(request.node.parent, name=name, callobj=law)
        try_fewer_examples(item)
    law()
    assert len(tried) == (120 if NIGHTLY else 12)


def test_laws_with_few_examples_keep_them() -> None:
    assert [fewer(declared) for declared in (5, 12, 150)] == [5, 10, 15]


def test_tests_of_both_databases_run_on_one_by_day() -> None:
    assert databases_tried() == (DATABASES if NIGHTLY else ("sqlite",))
    assert databases_tried(daily="postgresql") == (DATABASES if NIGHTLY else ("postgresql",))
