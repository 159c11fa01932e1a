"""A column may have the name of any word of SQL; an error advises quotes where it needs them."""

from typing import Final

import duckdb
import pytest
from sqlglot.dialects.duckdb import DuckDB

from controlplane.wire.language.aggregates import aggregate_of
from controlplane.wire.language.grammar import BadExpression, written
from controlplane.wire.language.parse import parsed, read_text
from controlplane.wire.language.tree import Column, Kind, columns_in
from controlplane.wire.query import BadQuery, computation_of
from controlplane.wire.query_text import QueryText
from tests.support.nightly import NIGHTLY

_OF_DUCKDB: Final = duckdb.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
# Words that were misread; by day these and every twentieth of the others.
KNOWN: Final = ("when", "case", "as", "from", "lambda", "symmetric", "asymmetric", "order", "null")
ALL: Final = sorted(
    {*KNOWN}
    | {name for (name,) in _OF_DUCKDB}
    | {word.lower() for word in DuckDB.Tokenizer.KEYWORDS if word.isidentifier()}
    | {"items", "keys", "user", "date", "timestamp", "stream", "count", "year", "abs"}
)
pytestmark = pytest.mark.nightly("solvers", by_day=True)
WORDS: Final = ALL if NIGHTLY else sorted({*KNOWN, *ALL[::20]})
# Texts with a column in every place, which read it once.
PLACES: Final = (
    "{0}", "{0} > 1", "1 + {0}", "-{0}", "abs({0})", "({0})", "case when {0} > 1 then 2 end",
    "case {0} when 1 then 2 else 3 end", "case when x = 1 then {0} end", "x in (1, 2) and {0} = 1",
    "{0} between 1 and 2", "x between {0} and 2", "{0} is null", "not {0} = 1", "{0} in (1, 2)",
    "cast({0} as text)", "coalesce({0}, 1)", "{0} * 2 + 1 > 3", "x > 0 and {0} < 1",
)  # fmt: skip
CONSTANTS: Final = ("true", "false", "null")


def column_in(text: str, name: str) -> bool:
    """Return whether a text reads a column. Raises `BadExpression`."""
    kinds = {name: Kind.INT, "x": Kind.INT}
    return Column(name, Kind.INT) in columns_in(parsed(text, kinds))


def reads_or_advises(text: str, word: str) -> bool:
    """Return whether a text reads a column, or the error advises to write it in quotes."""
    try:
        return column_in(text, word)
    except BadExpression as error:
        return error.why.endswith(f'is written in quotes: "{word}"')


@pytest.mark.parametrize("word", WORDS)
def test_a_column_may_have_the_name_of_a_word(word: str) -> None:
    for place in PLACES:
        assert column_in(place.format(f'"{word}"'), word)
        assert reads_or_advises(place.format(word), word) or word in CONSTANTS, place


@pytest.mark.parametrize("word", WORDS)
def test_a_column_of_such_a_name_works_in_every_part_of_a_query(word: str) -> None:
    kinds = {word: Kind.INT, "address": Kind.TEXT, f"at.{word}": Kind.INT}
    quoted = f'"{word}"'
    text = QueryText(
        {"total": f"sum({quoted})", "inner": f"max(at.{quoted})"}, key=[word],
        columns={"half": f"{quoted} / 2"}, where=f"{quoted} > 1 and half < 3",
    )  # fmt: skip
    computation = computation_of(text, kinds)
    assert computation.key == ((word, Column(word, Kind.INT)),)
    join = QueryText(
        {"pairs": "count(*)", "most": f"max(b.{quoted})"}, key=[f"a.{word}"],
        where=f"a.{quoted} > 1", right=[2], on=[[quoted, quoted]],
    )  # fmt: skip
    assert computation_of(join, kinds).key == ((f"a.{word}", Column(f"a.{word}", Kind.INT)),)
    for name, kind in kinds.items():
        column = Column(name, kind)
        assert read_text(f"count({written(name)})", kinds, aggregate_of).argument == column


def test_the_error_of_a_query_names_the_quotes() -> None:
    text = QueryText({"a": "sum(case)"}, where="when > 3")
    with pytest.raises(BadQuery) as refusal:
        computation_of(text, {"when": Kind.INT, "case": Kind.INT})
    assert refusal.value.fields["where"].endswith('the column when is written in quotes: "when"')
    assert refusal.value.fields["aggregates.a"].endswith('in quotes: "case"')
