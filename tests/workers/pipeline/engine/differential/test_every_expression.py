"""Every function, flag, kind and cast of the language on extreme values, against DuckDB.

DuckDB reads and computes the text itself: an expression has its values, or is rejected with a
place. 600 by day, 5,000 by night.
"""

import random
from collections import Counter
from typing import Any, Final

import duckdb
import numpy as np
import pytest

from controlplane.wire.language.functions import FUNCTIONS, OPERATORS
from controlplane.wire.language.grammar import BadExpression
from controlplane.wire.language.parse import parsed
from controlplane.wire.language.tree import Call, Expression, Kind
from tests.support.nightly import NIGHTLY
from tests.workers.pipeline.engine.differential import declared
from tests.workers.pipeline.engine.differential.declared import COLUMNS, Draw
from tests.workers.pipeline.engine.differential.duck import engine_values, plain, put_table, same
from tests.workers.pipeline.engine.differential.reading import Reader
from tests.workers.pipeline.engine.differential.sql import sql_of
from workers.pipeline.engine.evaluation.evaluator import Evaluator
from workers.pipeline.engine.failures.fault import QueryFault

EXPRESSIONS: Final = 5_000 if NIGHTLY else 600
EACH: Final = 50
FAILED: Final = "does not fit"


def evaluated(columns: dict[str, Any], expression: Expression) -> list[Any]:
    """Return the value for each record, `FAILED` where it does not fit."""
    evaluator = Evaluator(columns, declared.RECORDS)
    try:
        return engine_values(evaluator.array(expression), expression.kind)
    except QueryFault:
        return _halves(evaluator, expression, np.arange(declared.RECORDS))


def _halves(evaluator: Evaluator, expression: Expression, rows: Any) -> list[Any]:
    try:
        return engine_values(evaluator.within(rows).array(expression), expression.kind)
    except QueryFault:
        if len(rows) == 1:
            return [FAILED]
    parts = np.array_split(rows, 2)
    return [value for part in parts for value in _halves(evaluator, expression, part)]


def expected(client: duckdb.DuckDBPyConnection, expression: Expression) -> list[Any]:
    """Return what DuckDB has for each record: None for a value that it cannot compute."""
    rows = client.execute(f"SELECT TRY({sql_of(expression)}) FROM records").fetchall()
    return [plain(value, expression.kind) for (value,) in rows]


def functions_of(expression: Expression) -> set[str]:
    """Return the functions that an expression calls."""
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*(functions_of(one) for one in expression.arguments))


def accepted(text: str) -> Expression | None:
    """Return the expression, None for one that the language rejects with a place."""
    try:
        return parsed(text, COLUMNS)
    except BadExpression as refusal:
        error = refusal
    assert error.why, text
    assert 0 <= error.start < error.end <= len(text), (text, error)
    return None


def difference(found: list[Any], wanted: list[Any]) -> Any:
    """Return the first record with different values: its number and both; None without one."""
    for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if not (other is None if one == FAILED else same(one, other)):
            return at, one, other
    return None


@pytest.mark.nightly("solvers", by_day=True)
@pytest.mark.parametrize("seed", range(EXPRESSIONS // EACH))
def test_every_expression_is_what_duckdb_says_or_rejected(
    seed: int, client: duckdb.DuckDBPyConnection
) -> None:
    rng = random.Random(seed)
    columns, draw = declared.columns_of(rng), Draw(rng)
    put_table(client, "records", columns, COLUMNS)
    reader, seen = Reader(client, COLUMNS), Counter[str]()
    for text in (draw.expression() for _ in range(EACH)):
        mine = accepted(text)
        if mine is None or mine.kind is Kind.NULL:
            seen["rejected"] += 1
            continue
        theirs = reader.expression(text)
        assert theirs.kind is mine.kind, text
        apart = difference(evaluated(columns, mine), expected(client, theirs))
        assert apart is None, (text, apart)
        seen["equal"] += 1
    assert seen["equal"] >= EACH / 2


def test_every_function_is_drawn() -> None:
    draw = Draw(random.Random(0))
    trees = [one for one in (accepted(draw.expression()) for _ in range(1_000)) if one]
    assert set[str]().union(*map(functions_of, trees)) == {*OPERATORS, *FUNCTIONS}
