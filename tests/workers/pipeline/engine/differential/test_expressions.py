"""Every function and operator on random expressions, record by record, against DuckDB."""

import random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.language.functions import FUNCTIONS, OPERATORS
from controlplane.wire.language.parse import parsed
from controlplane.wire.language.tree import Call, Expression, Kind
from tests.workers.pipeline.engine.differential.data import (
    KINDS,
    nested,
    random_columns,
    random_times,
    seeds,
)
from tests.workers.pipeline.engine.differential.duck import engine_values, plain, put_table, same
from tests.workers.pipeline.engine.differential.sql import sql_of
from tests.workers.pipeline.engine.differential.texts import ALL, Texts, columns_of
from workers.pipeline.engine.evaluation.evaluator import Evaluator
from workers.pipeline.engine.failures.fault import QueryFault

RECORDS, EXPRESSIONS = 40, 60
# What is compared elsewhere: libraries round or write it differently.
ELSEWHERE = {"hash", "ln", "exp"}
FAILED = "does not fit"


def evaluated(columns: dict[str, Any], expression: Expression, records: int = RECORDS) -> list[Any]:
    """Return the value for each record, `FAILED` where it does not fit."""
    evaluator = Evaluator(columns, records)
    try:
        return engine_values(evaluator.array(expression), expression.kind)
    except QueryFault:
        return _halves(evaluator, expression, np.arange(records))


def _halves(evaluator: Evaluator, expression: Expression, rows: Any) -> list[Any]:
    try:
        return engine_values(evaluator.within(rows).array(expression), expression.kind)
    except QueryFault:
        if len(rows) == 1:
            return [FAILED]
    parts = np.array_split(rows, 2)
    return [value for part in parts for value in _halves(evaluator, expression, part)]


def expected(
    client: duckdb.DuckDBPyConnection, expressions: list[Expression]
) -> list[list[Any] | None]:
    """Return what DuckDB has for each expression: None for a value that it cannot compute.

    In place of all values None where it fails in spite of TRY, as it does at times.
    """
    parts = [f"TRY({sql_of(one)})" for one in expressions]
    try:
        rows = client.execute(f"SELECT {', '.join(parts)} FROM records").fetchall()
    except duckdb.Error:
        if len(expressions) == 1:
            return [None]
        return [found for one in expressions for found in expected(client, [one])]
    return [[plain(row[at], one.kind) for row in rows] for at, one in enumerate(expressions)]


def functions_of(expression: Expression) -> set[str]:
    """Return the functions that an expression calls."""
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*(functions_of(one) for one in expression.arguments))


def drawn(rng: random.Random) -> tuple[dict[str, Any], list[tuple[str, Expression]]]:
    """Return random columns, and random expressions over them with their texts."""
    columns = random_columns(rng, RECORDS) | {"ts": random_times(rng, RECORDS)}
    texts = Texts(rng, columns_of)
    found = [texts.expression(rng.choice(ALL), rng.randint(1, 3)) for _ in range(EXPRESSIONS)]
    expressions = [(text, parsed(text, KINDS)) for text in found]
    return columns, [(text, one) for text, one in expressions if one.kind is not Kind.NULL]


@pytest.mark.parametrize("seed", seeds(20))
def test_expressions_are_what_duckdb_says(seed: int, client: duckdb.DuckDBPyConnection) -> None:
    columns, kept = drawn(random.Random(seed))
    put_table(client, "records", columns, KINDS)
    wanted = expected(client, [one for _, one in kept])
    assert sum(values is None for values in wanted) < EXPRESSIONS / 5
    records = nested(columns)
    for (text, one), values in zip(kept, wanted, strict=True):
        if values is None:
            continue
        for at, (found, value) in enumerate(zip(evaluated(records, one), values, strict=True)):
            agree = value is None if found == FAILED else same(found, value)
            assert agree, (text, at, found, value, _row(columns, at))


def _row(columns: dict[str, Any], at: int) -> dict[str, Any]:
    return {name: column[at].cast(pa.int64()) if pa.types.is_timestamp(column.type) else column[at]
            for name, column in columns.items()}  # fmt: skip


def test_every_function_occurs() -> None:
    every = [one for seed in seeds(20) for _, one in drawn(random.Random(seed))[1]]
    seen = set[str]().union(*map(functions_of, every))
    assert seen >= {*OPERATORS, *FUNCTIONS} - ELSEWHERE
