"""Text is read into expressions, or refused with the place and the reason."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.language.aggregates import aggregate_of
from controlplane.wire.language.errors import Place
from controlplane.wire.language.grammar import BadExpression, qualify_columns
from controlplane.wire.language.parse import DEEPEST, parsed, read_text
from controlplane.wire.language.tree import Call, Column, Kind, Literal, columns_in, size_of

COLUMNS = {"ts": Kind.TIME, "car": Kind.INT, "speed": Kind.INT, "name": Kind.TEXT, "f": Kind.FLOAT}
parse_aggregate = partial(read_text, read=aggregate_of)


def test_precedence_and_kinds_are_those_of_sql() -> None:
    speed, three = Column("speed", Kind.INT), Literal(3, Kind.INT)
    product = Call("*", (speed, three), Kind.INT)
    total = Call("+", (Literal(1, Kind.INT), product), Kind.INT)
    assert parsed("1 + speed * 3 > f", COLUMNS) == Call(
        ">", (total, Column("f", Kind.FLOAT)), Kind.BOOL
    )
    assert parsed("not speed = 3 or name = 'a'", COLUMNS) == parsed(
        "(NOT (speed = 3)) OR (name = 'a') -- with a comment", COLUMNS
    )
    assert parsed("speed / 2", COLUMNS).kind is Kind.FLOAT
    assert parsed("-3", COLUMNS) == Literal(-3, Kind.INT)
    columns = columns_in(parsed("coalesce(speed, car) + speed", COLUMNS))
    assert [column.name for column in columns] == ["speed", "car", "speed"]


def test_texts_beside_times_are_times() -> None:
    found = parsed("ts >= '2008-05-17 10:00'", COLUMNS)
    assert isinstance(found, Call)
    assert found.arguments[1] == Literal(1_211_018_400_000, Kind.TIME)
    assert parsed("ts > '2008-05-17T12:00:00+02:00'", COLUMNS) == parsed(
        "ts > timestamp '2008-05-17 10:00:00'", COLUMNS
    )


@pytest.mark.parametrize(
    ("text", "marked", "word"),
    [
        ("", "", "empty"),
        ("   ", "   ", "empty"),
        ("sped > 3", "sped", "no column sped"),
        ("speed + sped", "sped", "no column sped"),
        ("speed +", "+", "missing"),
        ("speed > and", "and", "missing"),
        ("(speed", None, ""),
        ("speed = 'abc", None, "ends within"),
        ("speed + name", "name", "takes int or float or decimal here, not text"),
        ("1 = name", "1 = name", "cannot take int and text"),
        ("name and f > 1", "name", "takes bool"),
        ("foo(speed)", "foo", "no function foo"),
        ("f > sqrt(name)", "name", "takes int or float"),
        ("sqrt(speed, car)", "sqrt(speed, car", "takes 1 arguments, not 2"),
        ("ts > 'noon'", "'noon'", "not a time"),
        ("car in (1, 'a')", "car in (1, 'a'", "cannot take"),
        ("car in (speed)", "car in (speed", "constants only"),
        ("car in (select 1)", None, "list of constants"),
        ("(select 1)", None, "not part of the language"),
        ("speed; car", "speed; car", "second statement"),
        ("speed car", "speed car", "second value"),
        ("a.speed", "a.speed", "no table"),
        ("~car", "car", "not part of the language"),
        ("cast(car as blob)", "car", "casts go to"),
        ("cast(name as int)", "name", "takes int or float or decimal or bool"),
        ("99999999999999999999", "99999999999999999999", "64 bits"),
        ("case when car then 1 end", "car then 1", "cannot take"),
        ("case when car = 1 then 'a' else 2 end", None, "cannot take"),
        ("count(*)", None, "not part of the language"),
        ("sum(speed) over (partition by car)", None, "not part of the language"),
        ("x" * 4_001, None, "4,000 are allowed"),
        ("(" * 3_000 + "car" + ")" * 900, None, ""),
        (":car", None, "not part of the language"),
        ("car -> 1", None, "not part of the language"),
        ("__import__('os').system('true')", None, ""),
    ],
)
def test_what_is_no_expression_is_refused_where_it_stands(
    text: str, marked: str | None, word: str
) -> None:
    with pytest.raises(BadExpression) as refusal:
        parsed(text, COLUMNS)
    error = refusal.value
    assert word in error.why
    if marked is not None:
        assert text[error.start : error.end] == marked


def test_the_line_that_is_wrong_is_shown_with_marks() -> None:
    with pytest.raises(BadExpression) as refusal:
        parsed("speed > 3\n  and sped < 4", COLUMNS)
    assert refusal.value.fault.place == Place(
        "  and sped < 4", "      ^^^^", refusal.value.start + 1
    )


@settings(deadline=None)
@given(
    st.text(alphabet="speedcarf0123456789 ()+-*/%=<>'\",.;:andornotcasewhenthenend", max_size=40)
)
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    refused = None
    try:
        parsed(text, COLUMNS)
    except BadExpression as refusal:
        refused = refusal
    assert refused is None or 0 <= refused.start <= refused.end <= len(text)


DEEP = {
    "brackets": "(" * 900 + "car" + ")" * 900,
    "calls": "abs(" * 400 + "car" + ")" * 400,
    "signs": "- " * 1_900 + "car",
    "words": "not " * 900 + "true",
    "a chain": "+".join(["car"] * 900),
    "cases": "case when true then " * 150 + "car" + " end" * 150,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_nested_too_deeply_is_refused_with_a_place(text: str) -> None:
    """By the grammar and by what reads its tree, also within an aggregate."""
    for read, whole in ((parsed, text), (parse_aggregate, f"sum({text})")):
        with pytest.raises(BadExpression, match="nested too deeply") as refused:
            read(whole, COLUMNS)
        assert refused.value.fault.place.marks.endswith("^")


def test_the_place_of_brackets_is_the_innermost_one() -> None:
    with pytest.raises(BadExpression) as refused:
        parsed(f"(car) + {DEEP['brackets']}", COLUMNS)
    assert refused.value.start == len("(car) + ") + 899


def test_little_stack_is_no_other_fault() -> None:
    """A text that reads well is refused where its reader has hardly any stack left."""
    text = "+".join(["car"] * 90)
    assert size_of(parsed(text, COLUMNS), {}) == (179, 90)

    def below(frames: int) -> None:
        if frames:
            below(frames - 1)
        else:
            parse_aggregate(f"sum({text})", COLUMNS)

    told = set()
    for frames in range(600, 1000, 10):
        try:
            below(frames)
        except BadExpression as refused:
            told.add(refused.why)
        except RecursionError:
            continue  # the frames of this test itself
    assert told == {"is nested too deeply"}


def test_as_deep_as_allowed_is_read() -> None:
    assert size_of(parsed("+".join(["car"] * DEEPEST), COLUMNS), {})[1] == DEEPEST
    with pytest.raises(BadExpression, match="nested too deeply"):
        parsed("+".join(["car"] * (DEEPEST + 1)), COLUMNS)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("car", "a.car"),
        ("Car % 7", "(a.Car % 7)"),
        ("concat('car', car)", "concat('car', a.car)"),
        ('"car" + speed', '(a."car" + a.speed)'),
        ("case when car > 3 then f end", "(case when a.car > 3 then a.f end)"),
        ("7", "7"),
    ],
)
def test_an_expression_names_the_side_of_its_columns(text: str, shown: str) -> None:
    assert qualify_columns(text, "a") == shown
