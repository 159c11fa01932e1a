"""Queries as one reads them."""

import pytest

from controlplane.wire.query_text import QueryText
from dashboard.queries.sql import pseudo_sql

pytestmark = pytest.mark.nightly("pages")


def test_a_join_reads_like_sql() -> None:
    """The columns of a pair name their side, as they do everywhere else."""
    text = QueryText(
        {"n": "count(*)"},
        where="a.speed > b.speed",
        key=["a.car"],
        right=[3, 4],
        on=[["car", "car"], ["x //\n 100", "coalesce(y, x)"]],
    )
    assert pseudo_sql(text, ["s0"], 4, ["s3", "s4"]).splitlines() == [
        "SELECT   a.car,",
        "         count(*) AS n",
        "FROM     (s0) AS a",
        "JOIN     (s3, s4) AS b",
        "ON       a.car = b.car",
        "AND      (a.x // 100) = coalesce(b.y, b.x)",
        "WITHIN   the same window",
        "WHERE    a.speed > b.speed",
        "GROUP BY a.car, window of 60 s",
        "LATENESS 120 s",
        "SPLIT    over 4 tasks by what is equal on both sides",
    ]


def test_an_expression_that_is_none_any_more_is_shown_as_it_is() -> None:
    text = QueryText({"n": "count(*)"}, right=[3], on=[["car +", "car"]])
    assert "ON       a: car + = b.car" in pseudo_sql(text, ["s0"], 1, ["s3"])


def test_spaces_within_texts_and_names_are_kept_and_comments_left_out() -> None:
    text = QueryText({"n": "count(*)"}, where="s = 'a  b' -- two\n  and \"a  c\"   = 'it''s  x'")
    shown = pseudo_sql(text, ["s0"])
    assert "WHERE    s = 'a  b' and \"a  c\" = 'it''s  x'" in shown.splitlines()
