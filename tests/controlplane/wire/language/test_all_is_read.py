"""Every node, argument and token of a text is read or rejected with its place.

The first law walks the classes of sqlglot that the language accepts and sets each argument that
they declare, so a new argument of a new version of sqlglot is tried too.
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, Final

import pytest
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from controlplane.wire.language.aggregates import aggregate_of
from controlplane.wire.language.grammar import BadExpression, Syntax, syntax_of
from controlplane.wire.language.parse import _READERS, parsed, read_text
from controlplane.wire.language.tree import Call, Kind, Literal

COLUMNS: Final = {
    "s": Kind.TEXT, "i": Kind.INT, "f": Kind.FLOAT, "d": Kind.DECIMAL, "b": Kind.BOOL,
    "t": Kind.TIME, "at.x": Kind.INT,
}  # fmt: skip
# One text at least for each class of node, with all arguments that the language reads.
TEXTS: Final = (
    "i + 1", "i - 1", "i * 2", "i / 2", "i // 2", "i % 2", "i ^ 2", "s || 'a'", "i = 1", "i <> 1",
    "i < 1", "i <= 1", "i > 1", "i >= 1", "b and b", "b or b", "s not like 'a%'", "at.x", "-i",
    "not b", "case i when 1 then 2 else 3 end", "case when b then 1 end", "cast(f as int)",
    "cast(f as decimal(38, 9))", "i in (1, 2)", "i between 1 and 2", "b is null", "b is true",
    "abs(i)", "(i)", "'a'", "1.5", "null", "true", "i", "a.b.c.d.e.f",
)  # fmt: skip
# The arguments that the language reads, by class. All others are rejected.
BINARY: Final = {"this", "expression"}
READ: Final[dict[type[exp.Expr], set[str]]] = {
    exp.Like: {*BINARY, "negate"}, exp.Column: {"this", "table", "db", "catalog"},
    exp.Dot: BINARY, exp.Literal: {"this", "is_string"}, exp.Boolean: {"this"}, exp.Null: set(),
    exp.Neg: {"this"}, exp.Not: {"this"}, exp.Paren: {"this"}, exp.Is: BINARY,
    exp.Case: {"this", "ifs", "default"}, exp.If: {"this", "true"}, exp.Cast: {"this", "to"},
    exp.DataType: {"this", "expressions"}, exp.DataTypeParam: {"this"},
    exp.In: {"this", "expressions"}, exp.Between: {"this", "low", "high"},
    exp.Anonymous: {"this", "expressions"}, exp.Identifier: {"this", "quoted"}, exp.Star: set(),
}  # fmt: skip
parse_aggregate = partial(read_text, read=aggregate_of)


def nodes_of(text: str) -> Iterator[exp.Expr]:
    """Yield the nodes of a copy of the tree of a text."""
    yield from syntax_of(text).tree.copy().walk()


def accepted() -> Iterator[tuple[str, int, str]]:
    """Yield each argument of each class once: a text, the number of a node in it, the argument."""
    seen = set[tuple[type[exp.Expr], str]]()
    for text in (*TEXTS, "count(*)"):
        for number, node in enumerate(nodes_of(text)):
            for name in node.arg_types:
                if (type(node), name) not in seen:
                    seen.add((type(node), name))
                    yield text, number, name


def refusal_with(monkeypatch: pytest.MonkeyPatch, text: str, number: int, name: str) -> Any:
    """Return the error if one more argument of a node is set; None without an error."""
    tree = syntax_of(text).tree.copy()
    list(tree.walk())[number].args[name] = True
    syntax = Syntax(tree, {id(node): node for node in tree.walk()}, None)
    monkeypatch.setattr("controlplane.wire.language.parse.syntax_of", lambda _: syntax)
    read = parse_aggregate if text == "count(*)" else parsed
    try:
        read(text, {**COLUMNS, "a.b.c.d.e.f": Kind.INT})
    except BadExpression as error:
        return error
    return None


@pytest.mark.parametrize(("text", "number", "name"), list(accepted()))
def test_each_argument_of_each_class_is_read_or_rejected(
    monkeypatch: pytest.MonkeyPatch, text: str, number: int, name: str
) -> None:
    node = list(nodes_of(text))[number]
    if name in READ.get(type(node), BINARY):
        return
    error = refusal_with(monkeypatch, text, number, name)
    assert error is not None
    assert 0 <= error.start < error.end <= len(text)
    wanted = "list of constants" if name in ("query", "field", "unnest") else name.strip("_")
    assert wanted in error.why or "is not part of the language" in error.why


def test_the_law_knows_every_class_that_the_language_reads() -> None:
    classes = {type(node) for text in TEXTS for node in nodes_of(text)}
    assert classes >= set(_READERS)
    assert set(READ) | set(_READERS) == classes | {exp.Star}


@pytest.mark.parametrize("text", [text for text in TEXTS if "a.b" not in text])
def test_a_node_that_no_reader_reads_is_rejected(text: str) -> None:
    assert parsed(text, COLUMNS) is not None
    with pytest.raises(BadExpression, match="is not expected here"):
        read_text(text, COLUMNS, lambda _, __: None)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("i between symmetric 10 and 0", "i between symmetric 10 and 0"),
        ("i between asymmetric 0 and 10", "asymmetric"),
        ("cast(f as int default 3 on conversion error)", "3"),
        ("cast(s as text collate nocase)", "nocase"),
        ("cast(s as varchar(3))", "3"),
        ("cast(f as float(24))", "24"),
        ("cast(t as timestamp(0))", "0"),
        ("cast(f as decimal(18, 3))", "f as decimal(18, 3"),
        ("abs(all i)", "all"),
        ("abs(distinct i)", "i"),
        ("abs(i,)", ")"),
        ("i in (1, 2,)", ")"),
        ("i in (1,, 2)", ","),
        ("i div 2", "div"),
        ("!b", "!"),
        ("s = 'a' 'b'", "'a'"),
        ("i < 1 = b", "i < 1 = b"),
        ("b = (i < 1) = b", "b = (i < 1) = b"),
        ("at.abs(i)", "abs(i"),
        ("(at).x", "at"),
        ("s like 'a!%' escape '!'", None),
        ("s ilike 'a'", None),
        ("s similar to 'a'", None),
        ("s collate nocase = 'a'", None),
        ("abs(i) filter (where b)", None),
        ("abs(i) over ()", None),
        ("abs(i order by i)", None),
        ("abs(i) ignore nulls", None),
        ("try_cast(s as int)", None),
        ("cast(s as date format 'YYYY')", None),
        ("E'a'", None),
        ("N'a'", None),
        ("x'10'", None),
        ("0x10", None),
        ("$$a$$", None),
        ("interval '1 day'", None),
        ("t at time zone 'UTC'", None),
        ("i; i", None),
        ("decimal '0.5'::float", "::"),
        ("decimal(38, 9) '0.5'::float", "::"),
        ("timestamp with time zone '2024-01-31'::date", "::"),
    ],
)
def test_what_sqlglot_drops_or_marks_is_rejected_with_its_place(
    text: str, marked: str | None
) -> None:
    for read, whole in ((parsed, text), (parse_aggregate, f"max({text})")):
        with pytest.raises(BadExpression) as refusal:
            read(whole, COLUMNS)
        error = refusal.value
        assert 0 <= error.start < error.end <= len(whole)
        if marked is not None and read is parsed:
            assert text[error.start : error.end] == marked


def test_a_negated_pattern_is_negated() -> None:
    like = parsed("s like 'a%'", COLUMNS)
    assert parsed("s not like 'a%'", COLUMNS) == Call("not", (like,), Kind.BOOL)
    assert parsed("not s not like 'a%'", COLUMNS) == parsed("not (not s like 'a%')", COLUMNS)


@pytest.mark.parametrize(
    "text", ["abs(i) -- absolute", "/* of i */ abs(i)", "abs(i);", "abs(\n i )", 'abs("i")']
)
def test_comments_space_and_a_last_semicolon_mean_nothing(text: str) -> None:
    assert parsed(text, COLUMNS) == parsed("abs(i)", COLUMNS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1_000", 1000),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_numbers_are_read_as_they_are_written(text: str, value: float) -> None:
    literal = parsed(text, COLUMNS)
    assert isinstance(literal, Literal)
    assert (literal.value, type(literal.value)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "quantile(f, 1e)", "quantile(f, 'a')", "top_k(s, 1.5)", "top_k(s, 1e400)",
        "quantile(f, 0.5, 1)", "count(distinct s)", "count(* except (s))",
        "sum(i) filter (where b)", "sum(distinct i)", "sum(i) over ()",
    ],
)  # fmt: skip
def test_an_aggregate_is_read_completely(text: str) -> None:
    with pytest.raises(BadExpression) as refusal:
        parse_aggregate(text, COLUMNS)
    assert 0 <= refusal.value.start < refusal.value.end <= len(text)


# What may be inserted without a meaning: space in a call, the sign of a number, an end.
MEANINGLESS: Final = re.compile(r"\+ +[0-9.]|; $")
SIGNS: Final = "( ) [ ] , . :: + - * / // % ^ || = <> < x 1 'a' ;"
WORDS: Final = (
    "and or not in like between is null true case when then else end cast as all distinct any some "
    "only nulls on using row default desc asc"
)


@pytest.mark.parametrize("text", [*TEXTS[:-1], "coalesce(i, 1)", "substr(s, 1, 2)", "not b = b"])
def test_no_inserted_token_is_skipped(text: str) -> None:
    meaning = parsed(text, COLUMNS)
    ends = {0, *(token.end + 1 for token in DuckDB().tokenize(text))}
    for place, token in product(sorted(ends), [*SIGNS.split(), *WORDS.split()]):
        longer = f"{text[:place]} {token} {text[place:]}"
        assert other_or_none(longer) != meaning or MEANINGLESS.search(longer), longer


def other_or_none(text: str) -> Any:
    """Return the expression of a text, None if it is rejected."""
    try:
        return parsed(text, COLUMNS)
    except BadExpression:
        return None


def test_a_fault_of_sqlglot_is_an_error_of_the_text() -> None:
    with pytest.raises(BadExpression, match="is not an expression"):
        parsed("i[ / 2]", COLUMNS)
