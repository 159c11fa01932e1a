"""Rows of tables: differences, order, and the safe rules, against brute force."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.lab.shedding.fit.table import (
    Delta,
    Table,
    ascending,
    empty_table,
    is_needed,
    is_undominated,
)


@st.composite
def tables(draw: st.DrawFn, streams: int = 2) -> Table:
    number = st.integers(0, 4).map(float)
    rows = draw(st.lists(st.tuples(st.tuples(*[number] * streams), number, st.booleans())))
    rates = np.array([row[0] for row in rows], np.float64).reshape(-1, streams)
    scores = np.array([row[1] for row in rows], np.float64)
    table = Table(rates, scores, np.array([row[2] for row in rows], np.bool_))
    return table.take(ascending(rates, scores))


@given(tables(), tables())
def test_a_difference_turns_one_table_into_the_other(old: Table, new: Table) -> None:
    delta = Delta.between(old, new)
    assert delta.apply(old).equals(new)
    assert delta.is_empty == old.equals(new)
    common = {*old.keys} & {*new.keys}
    assert len(delta.removed) == old.size - len(common)
    assert delta.rows.size == new.size - len(common)
    assert Delta.between(empty_table(2), new).rows.equals(new)


@given(tables())
def test_order(table: Table) -> None:
    rows = [tuple(row) for row in table.rates]
    assert rows == sorted(set(rows))


@given(tables())
def test_undominated(table: Table) -> None:
    wanted = [
        bool(table.whole[row])
        or not any(
            other != row
            and (table.rates[other] <= table.rates[row]).all()
            and table.scores[other] >= table.scores[row]
            for other in range(table.size)
        )
        for row in range(table.size)
    ]
    assert is_undominated(table).tolist() == wanted


@given(tables())
def test_only_whole_rows_below_whole_rows_are_not_needed(table: Table) -> None:
    needed = is_needed(table)
    used = table.rates.max(axis=0, initial=0.0) > 0
    whole = table.rates[table.whole][:, used]
    for row in np.flatnonzero(~needed):
        assert table.whole[row]
        assert (whole > table.rates[row, used]).all(axis=1).any()


def test_a_complete_grid_keeps_rows_without_a_whole_row_above() -> None:
    steps = np.arange(4.0)
    rates = np.array([(x, y) for x in steps for y in steps if x + y <= 3])
    table = Table(rates, rates.sum(axis=1), np.ones(len(rates), np.bool_))
    kept = {tuple(row) for row in rates[is_needed(table)]}
    assert kept == {(x, y) for x, y in map(tuple, rates) if x + y + 2 > 3}
    # With complementary plans above, a row is needed.
    partly = Table(rates, rates.sum(axis=1), rates.sum(axis=1) <= 1)
    assert is_needed(partly).all()
