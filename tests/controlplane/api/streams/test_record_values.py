"""Values that a column does not have are refused by the API with their place and what it takes."""

from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import Client

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.models import Cluster

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("requests")]
LETTERS: Final = "/api/v1/clusters/sf/dead-letters"
STREAMS: Final = "/api/v1/clusters/sf/streams"
COLUMNS: Final = {
    "d": "decimal(12, 2)", "wide": "decimal(38, 9)", "i": "int64", "f": "float64", "s": "string",
    "t": "timestamp(ms)", "l": "list<decimal(12, 2)>",
}  # fmt: skip
BEFORE: Final = "at most 10 digits before the point, 2 after"
HUGE: Final = "1e1000000000000000000"
REFUSED: Final = [
    ("d", '"1e-999999999"', BEFORE), ("d", "1e-999999999", BEFORE), ("d", '"1e-41"', BEFORE),
    ("d", '"1e-77"', BEFORE), ("d", HUGE, BEFORE), ("d", "9" * 5_000, BEFORE),
    ("wide", f'"{"1" * 31}"', "29 digits"), ("wide", "1" * 31, "29 digits"),
    ("i", HUGE, "a whole number"), ("i", "1e-400", "a whole number"),
    ("i", f"1e{'9' * 5_000}", "a whole number"), ("i", "9223372036854775808.0", "a whole number"),
    ("f", HUGE, "64 bits"), ("s", HUGE, "text"), ("s", str(2**70), "text"),
    ("t", HUGE, "milliseconds"),
    ("t", '"9999-12-31T23:59:59-05:00"', "milliseconds"), ("t", '"2016-12-31T23:59:60Z"', "ISO"),
    ("l", "[1, 1e-999999999]", "[1]: Must be a number of at most 10"),
]  # fmt: skip


@pytest.fixture
def script(operator: Actor, sf: Cluster) -> Client:
    """A client with an operator's token, and a stream with a column of each kind."""
    assert isinstance(operator.user, User)
    token = tokens.create(operator.user, "test")
    client = Client(headers={"authorization": f"Bearer {token}"})
    columns = [{"name": name, "type": kind} for name, kind in COLUMNS.items()]
    body = {"streams": [{"name": "v", "declared_rate": 1, "schema": {"columns": columns}}]}
    assert client.post(STREAMS, body, content_type="application/json").status_code in (200, 201)
    return client


def post(client: Client, body: str, kind: str = "application/json", query: str = "") -> Any:
    return client.post(f"{STREAMS}/v/records{query}", body, content_type=kind)


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_values_that_their_columns_do_not_have(script: Client, kind: str) -> None:
    """422 with record, column, value and what is accepted; as dead letters they stay faulty."""
    records = ["{}", *(f'{{"{column}": {value}}}' for column, value, _ in REFUSED)]
    body = f"[{','.join(records)}]" if kind == "application/json" else "\n".join(records)
    response = post(script, body, kind)
    assert response.status_code == 422
    rows = response.json()["rows"]
    assert len(rows) == len(REFUSED)
    for index, (column, _, why) in enumerate(REFUSED, 1):
        assert list(rows[str(index)]) == [column]
        assert why in rows[str(index)][column][0]
        assert len(rows[str(index)][column][0]) < 250
    response = post(script, body, kind, "?on_bad=dead_letter")
    assert (response.status_code, response.json()["dead_letters"]) == (201, len(REFUSED))
    letters = script.get(LETTERS).json()["dead_letters"]
    assert sorted(letter["record"] for letter in letters) == sorted(
        record.replace(" ", "") if kind == "application/json" else record for record in records[1:]
    )
    ids = {"ids": [letter["id"] for letter in letters]}
    replayed = script.post(f"{LETTERS}/replay", ids, content_type="application/json")
    assert replayed.status_code == 200
    assert len(script.get(LETTERS).json()["dead_letters"]) == len(REFUSED)


def test_cells_of_csv_that_their_columns_do_not_have(script: Client) -> None:
    """Each cell is a fault of its record."""
    cells = [(c, v.strip('"'), why) for c, v, why in REFUSED if c not in ("s", "l")]
    lines = [",".join(v if name == c else "" for name in COLUMNS) for c, v, _ in cells]
    response = post(script, "\n".join([",".join(COLUMNS), *lines, ""]), "text/csv")
    assert response.status_code == 422
    rows = response.json()["rows"]
    assert [(list(rows[str(i)]), cells[i][2] in str(rows[str(i)])) for i in range(len(cells))] == [
        ([column], True) for column, _, _ in cells
    ]


def test_exact_values_are_appended(script: Client) -> None:
    """Whole numbers beyond 53 bits with a point, all digits of decimals, zeros of any exponent."""
    long = f"1{'0' * 5_000}e-5000"
    wide = "12345678901234567890123456789.123456789"
    record = f'{{"i": 9007199254740993.0, "wide": {wide}, "d": {long}, "f": 0e{"9" * 19}}}'
    response = post(script, f"[{record}]")
    assert response.status_code == 201, response.content
