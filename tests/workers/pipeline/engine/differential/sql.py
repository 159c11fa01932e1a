"""Expressions of the language as SQL of DuckDB, with the rules in which the two differ.

Decimals are whole numbers of 1e-9 there (HUGEINT), so that rounding is spelled out; times are
TIMESTAMP without a zone.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final

from controlplane.wire.language.tree import (
    NUMBERS,
    Call,
    Column,
    Expression,
    Kind,
    Literal,
    widest_number,
)

UNIT: Final = 10**9
# Holds every decimal; the default context rounds to 28 digits.
WIDE: Final = Context(prec=60)
MACROS: Final = """
CREATE MACRO differs(a, b) AS a % b <> 0 AND (a % b < 0) <> (b < 0);
CREATE MACRO fdiv(a, b) AS a // b - CASE WHEN differs(a, b) THEN 1 ELSE 0 END;
CREATE MACRO fmodulo(a, b) AS a % b + CASE WHEN differs(a, b) THEN b ELSE 0 END;
CREATE MACRO half_even(p, q) AS fdiv(p, q) + CASE
  WHEN 2 * fmodulo(p, q) > q OR (2 * fmodulo(p, q) = q AND fdiv(p, q) % 2 <> 0) THEN 1 ELSE 0 END;
CREATE MACRO between_(low, x, high) AS
  CASE WHEN x < low THEN low WHEN x > high THEN high ELSE x END;
CREATE MACRO fits(u) AS u::DECIMAL(38, 0)::HUGEINT;
CREATE MACRO big(x) AS (x)::HUGEINT;
CREATE MACRO whole(x) AS CASE WHEN isnan(x) THEN NULL ELSE x::BIGINT END;
"""


def _half_even(number: int, unit: int) -> int:
    """Return the number of units nearest to a number."""
    whole, rest = divmod(number, unit)
    return whole + (2 * rest > unit or (2 * rest == unit and whole % 2 == 1))


def _over(left: int, right: int) -> int:
    return _half_even(left * UNIT * (1 if right > 0 else -1), abs(right))


def _round_decimal(units: str, digits: int) -> str:
    unit = 10 ** (9 - max(-30, min(digits, 9)))
    return str(_half_even(int(units), unit) * unit)


def _round_float(number: float, digits: int) -> float:
    """Round half to even; exactly where Arrow's power of 10 is not."""
    if not math.isfinite(number) or (digits >= 0 and abs(number) >= 2.0**52):
        return number
    if abs(digits) > 14:
        try:
            return round(number, max(-400, min(digits, 400)))
        except OverflowError:
            return math.copysign(math.inf, number)
    power = 10.0 ** abs(digits)
    scaled = number * power if digits >= 0 else number / power
    whole = float(round(scaled))
    if whole == scaled and (digits >= 0 or abs(number) >= 1):
        return number
    return whole / power if digits >= 0 else whole * power


def _float_text(number: float) -> str:
    """Return the shortest digits, with an exponent from 1e10 on and below 1e-6."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(number + 0.0)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) + exponent - 1
    if number == 0 or -7 < power < 10:
        return f"{Decimal((sign, digits, exponent)):f}"
    rest = "".join(map(str, digits[1:]))
    return f"{'-' * sign}{digits[0]}{'.' * bool(rest)}{rest}e{power:+d}".replace("e-0", "e-")


def _decimal_text(units: str) -> str:
    return f"{Decimal(units).scaleb(-9, WIDE).normalize(WIDE):f}" if int(units) else "0"


def _units_of_float(number: float) -> str | None:
    if not math.isfinite(number):
        return None if math.isnan(number) else "inf"
    return str(round(Fraction(number) * UNIT))


def _of_units(compute: Callable[[int, int], int]) -> Callable[[str, str], str]:
    return lambda left, right: str(compute(int(left), int(right)))


_D, _T, _B = "DOUBLE", "VARCHAR", "BIGINT"
# Floats divide as they do in Python: the remainder of DuckDB is not exact for large quotients.
# Products of decimals are beyond HUGEINT. By name: function, arguments, result.
FUNCTIONS: Final[Mapping[str, tuple[Callable[..., Any], Any, str]]] = {
    "fdiv_down": (lambda x, y: x // y, [_D, _D], _D),
    "fmod_down": (lambda x, y: x % y, [_D, _D], _D),
    "round_float": (_round_float, [_D, _B], _D),
    "round_decimal": (_round_decimal, [_T, _B], _T),
    "decimal_times": (_of_units(lambda x, y: _half_even(x * y, UNIT)), [_T, _T], _T),
    "decimal_over": (_of_units(_over), [_T, _T], _T),
    "decimal_down": (_of_units(lambda x, y: x // y * UNIT), [_T, _T], _T),
    "decimal_rest": (_of_units(lambda x, y: x % y), [_T, _T], _T),
    "float_text": (_float_text, [_D], _T),
    "decimal_text": (_decimal_text, [_T], _T),
    "float_units": (_units_of_float, [_D], _T),
}


def sql_of(expression: Expression) -> str:
    """Return an expression in DuckDB's SQL."""
    match expression:
        case Literal():
            return _literal(expression)
        case Column():
            return f'"{expression.name}"'
        case Call():
            return f"({_call(expression)})"


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if literal.kind is Kind.TEXT:
        return "'" + str(value).replace("'", "''") + "'"
    if literal.kind is Kind.DECIMAL:
        value = int(Decimal(str(value)).scaleb(9, WIDE))
    return _CONSTANTS[literal.kind].format(value)


_TYPES: Final = {
    Kind.INT: "BIGINT", Kind.FLOAT: "DOUBLE", Kind.DECIMAL: "HUGEINT", Kind.BOOL: "BOOLEAN",
    Kind.TEXT: "VARCHAR", Kind.TIME: "TIMESTAMP", Kind.DATE: "DATE",
}  # fmt: skip
_CONSTANTS: Final = {
    Kind.INT: "'{}'::BIGINT",
    Kind.FLOAT: "'{}'::DOUBLE",
    Kind.DECIMAL: "({})::HUGEINT",
    Kind.BOOL: "{}",
    Kind.TIME: "make_timestamp_ms({}::BIGINT)",
    Kind.DATE: "(DATE '1970-01-01' + {}::INTEGER)",
}


def _as(expression: Expression, kind: Kind) -> str:
    """Return an expression converted to a wider kind of number."""
    text = sql_of(expression)
    if expression.kind is kind or expression.kind is Kind.NULL:
        return text
    if kind is Kind.DECIMAL:
        if expression.kind is Kind.FLOAT:
            return f"fits(float_units({text}))"
        return f"({text}::HUGEINT * {UNIT})"
    if expression.kind is Kind.DECIMAL:
        return f"({text}::VARCHAR || 'e-9')::DOUBLE"
    return f"{text}::DOUBLE"


def _alike(call: Call) -> list[str]:
    """Return the arguments in the kind that holds all of them."""
    kind = _common(call.arguments)
    return [_as(one, kind) for one in call.arguments]


def _common(arguments: Any) -> Kind:
    kinds = {one.kind for one in arguments} - {Kind.NULL}
    if kinds and kinds <= set(NUMBERS):
        return widest_number(kinds) or Kind.FLOAT
    return kinds.pop() if kinds else Kind.NULL


# What may have a value although an argument is the bare word null.
_OF_NULL: Final = ("and", "or", "is null", "in", "case", "coalesce", "greatest", "least", "nullif")


def _call(call: Call) -> str:
    if call.function not in _OF_NULL and any(one.kind is Kind.NULL for one in call.arguments):
        return f"NULL::{_TYPES[call.kind]}"
    if call.function in _OPERATORS:
        return _arithmetic(call)
    if call.function in ("=", "<>", "<", "<=", ">", ">="):
        hashed = [one.arguments[0] for one in call.arguments
                  if isinstance(one, Call) and one.function == "hash"]  # fmt: skip
        # Equal values have equal hashes; of these, no others.
        if len(hashed) == len(call.arguments):
            call = Call(call.function, tuple(hashed), call.kind)
        left, right = _alike(call)
        return f"{left} {call.function} {right}"
    if call.function in _WHOLE:
        return _WHOLE[call.function](call)
    return _PLAIN[call.function].format(*(sql_of(one) for one in call.arguments))


def _decimals(name: str) -> str:
    return f"fits(decimal_{name}({{0}}::VARCHAR, {{1}}::VARCHAR))"


# By operator: of whole numbers, of floats, of decimals.
_OPERATORS: Final = {
    "+": ("{0} + {1}", "{0} + {1}", "fits({0} + {1})"),
    "-": ("{0} - {1}", "{0} - {1}", "fits({0} - {1})"),
    "*": ("{0} * {1}", "{0} * {1}", _decimals("times")),
    "/": ("{0}::DOUBLE / nullif({1}, 0)::DOUBLE", "CASE WHEN {1} = 0 THEN NULL ELSE {0} / {1} END",
          _decimals("over")),
    "//": ("fdiv(big({0}), big(nullif({1}, 0)))::BIGINT",
           "CASE WHEN {1} = 0 THEN NULL ELSE fdiv_down({0}, {1}) END",
           _decimals("down")),
    "%": ("fmodulo(big({0}), big(nullif({1}, 0)))::BIGINT",
          "CASE WHEN {1} = 0 THEN NULL ELSE fmod_down({0}, {1}) END",
          _decimals("rest")),
}  # fmt: skip


def _arithmetic(call: Call) -> str:
    kinds = [one.kind for one in call.arguments]
    if Kind.TIME in kinds:
        left, right = (sql_of(one) for one in call.arguments)
        return f"epoch_ms({left}) - epoch_ms({right})"
    if Kind.DATE in kinds:
        left, right = (sql_of(one) for one in call.arguments)
        return f"({left} - {right})::BIGINT"
    place = (Kind.INT, Kind.FLOAT, Kind.DECIMAL).index(_common(call.arguments))
    return _OPERATORS[call.function][place].format(*_alike(call))


def _to_int(rounding: str) -> Callable[[Call], str]:
    def convert(call: Call) -> str:
        (value,) = call.arguments
        text = sql_of(value)
        if value.kind is Kind.DECIMAL:
            down = f"fdiv({text}, {UNIT}::HUGEINT)"
            up = f"-fdiv(-{text}, {UNIT}::HUGEINT)"
            towards = {"floor": down, "ceil": up, "trunc": f"({text} // {UNIT}::HUGEINT)"}
            return f"({towards[rounding]})::BIGINT"
        if value.kind is Kind.FLOAT:
            return f"whole({rounding}({text}))"
        return f"{text}::BIGINT"

    return convert


def _round(call: Call) -> str:
    value, *digits = call.arguments
    places = f"({sql_of(digits[0])})::BIGINT" if digits else "0::BIGINT"
    if value.kind is Kind.DECIMAL:
        return f"fits(round_decimal({sql_of(value)}::VARCHAR, {places}))"
    if digits:
        return f"round_float({_as(value, Kind.FLOAT)}, {places})"
    return f"round_even({_as(value, Kind.FLOAT)}, 0)"


def _to_text(call: Call) -> str:
    (value,) = call.arguments
    text = sql_of(value)
    match value.kind:
        case Kind.FLOAT:
            return f"float_text({text})"
        case Kind.DECIMAL:
            return f"decimal_text({text}::VARCHAR)"
        case Kind.TIME:
            return f"strftime({text}, '%Y-%m-%d %H:%M:%S.%gZ')"
    return f"{text}::VARCHAR"


def _case(call: Call) -> str:
    *branches, default = call.arguments
    kind = _common([*branches[1::2], default])
    whens = "".join(
        f" WHEN {sql_of(condition)} THEN {_as(value, kind)}"
        for condition, value in zip(branches[::2], branches[1::2], strict=True)
    )
    return f"CASE{whens} ELSE {_as(default, kind)} END"


def _coalesce(call: Call) -> str:
    # Written as CASE, which computes no branch that is not taken.
    values = _alike(call)
    if len(values) == 1:
        return values[0]
    whens = "".join(f" WHEN ({one}) IS NOT NULL THEN {one}" for one in values[:-1])
    return f"CASE{whens} ELSE {values[-1]} END"


def _connected(decides: str) -> Callable[[Call], str]:
    def connect(call: Call) -> str:
        left, right = (sql_of(one) for one in call.arguments)
        word = "AND" if decides == "FALSE" else "OR"
        return f"CASE WHEN {left} = {decides} THEN {decides} ELSE {left} {word} {right} END"

    return connect


def _among(call: Call) -> str:
    value, *options = _alike(call)
    return f"{value} IN ({', '.join(options)})"


def _nullif(call: Call) -> str:
    left, right = _alike(call)
    return f"CASE WHEN {left} = {right} THEN NULL ELSE {sql_of(call.arguments[0])} END"


def _absolute(call: Call) -> str:
    (value,) = call.arguments
    text = sql_of(value)
    if value.kind is not Kind.INT:
        return f"abs({text})"
    # The absolute value of the least number does not fit.
    return f"CASE WHEN {text} < 0 THEN 0::BIGINT - {text} ELSE {text} END"


def _negative(call: Call) -> str:
    (value,) = call.arguments
    return f"0::BIGINT - {sql_of(value)}" if value.kind is Kind.INT else f"-{sql_of(value)}"


def _floats(template: str) -> Callable[[Call], str]:
    return lambda call: template.format(*(_as(one, Kind.FLOAT) for one in call.arguments))


def _substr(call: Call) -> str:
    text, first, *size = (sql_of(one) for one in call.arguments)
    begin = f"between_(1, {first}, 100000)"
    if not size:
        return f"substr({text}, {begin})"
    length = f"between_(0, {size[0]}, 100000)"
    return f"CASE WHEN {size[0]} IS NOT NULL THEN substr({text}, {begin}, {length}) END"


def _all_of(word: str) -> Callable[[Call], str]:
    return lambda call: f"{word}({', '.join(_alike(call))})"


_WHOLE: Final[dict[str, Callable[[Call], str]]] = {
    "to int": _to_int("trunc"), "floor": _to_int("floor"), "ceil": _to_int("ceil"),
    "round": _round, "case": _case, "coalesce": _coalesce, "and": _connected("FALSE"),
    "or": _connected("TRUE"), "in": _among, "nullif": _nullif, "abs": _absolute,
    "negative": _negative, "greatest": _all_of("greatest"), "least": _all_of("least"),
    "sqrt": _floats("CASE WHEN {0} < 0 THEN NULL ELSE sqrt({0}) END"),
    "ln": _floats("CASE WHEN {0} <= 0 THEN NULL ELSE ln({0}) END"),
    "exp": _floats("exp({0})"), "power": _floats("power({0}, {1})"),
    "isnan": _floats("isnan({0})"), "isfinite": _floats("isfinite({0})"),
    "to float": _floats("{0}"), "to text": _to_text, "substr": _substr,
    "to decimal": lambda call: _as(call.arguments[0], Kind.DECIMAL),
}  # fmt: skip
_PLAIN: Final = {
    "not": "NOT {0}", "is null": "{0} IS NULL", "like": "{0} LIKE {1} ESCAPE '\\'",
    "lower": "lower({0})",
    "upper": "upper({0})", "length": "length({0})", "trim": "trim({0})",
    "starts_with": "starts_with({0}, {1})", "contains": "contains({0}, {1})",
    "epoch_ms": "epoch_ms({0})", "year": "year({0})", "month": "month({0})", "day": "day({0})",
    "hour": "hour({0})", "minute": "minute({0})", "second": "second({0})",
    "day_of_week": "isodow({0})", "to time": "{0}::TIMESTAMP",
    "to date": "{0}::DATE",
}  # fmt: skip


def _concat(call: Call) -> str:
    return " || ".join(sql_of(one) for one in call.arguments)


_WHOLE["concat"] = _concat
