"""Values that a column does not have are refused by the API with their place and what it takes."""

import json
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import Client

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.models import Cluster

pytestmark = pytest.mark.django_db(transaction=True)
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
    ("f", HUGE, "64 bits"), ("s", HUGE, "text"), ("s", str(2**70), "text"), ("t", HUGE, "milliseconds"),
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


@pytest.mark.parametrize(("column", "value", "why"), REFUSED)
def test_a_value_that_its_column_does_not_have(
    script: Client, column: str, value: str, why: str
) -> None:
    """In JSON and in lines of it: 422 with record, column, value and what is accepted."""
    record = f'{{"{column}": {value}}}'
    for body, kind in (
        (f'{{"records": [{{}}, {record}]}}', "application/json"),
        (f"{{}}\n{record}\n", "application/x-ndjson"),
    ):
        response = post(script, body, kind)
        assert response.status_code == 422
        (reasons,) = response.json()["rows"]["1"].values()
        assert why in reasons[0]
        assert len(reasons[0]) < 250
    response = post(script, f"[{{}}, {record}]", query="?on_bad=dead_letter")
    assert (response.status_code, response.json()["dead_letters"]) == (201, 1)
    letters = script.get("/api/v1/clusters/sf/dead-letters").json()["items"]
    assert json.loads(letters[0]["record"], parse_float=str, parse_int=str)[column] is not None
    replayed = script.post(
        "/api/v1/clusters/sf/dead-letters/replay", {"ids": [letters[0]["id"]]},
        content_type="application/json",
    )  # fmt: skip
    assert replayed.status_code == 200


@pytest.mark.parametrize(
    ("column", "value"), [(c, v.strip('"')) for c, v, _ in REFUSED if c not in ("s", "l")]
)
def test_a_cell_of_csv_that_its_column_does_not_have(
    script: Client, column: str, value: str
) -> None:
    response = post(script, f"{column},s\n,a\n{value},b\n", "text/csv")
    assert response.status_code == 422
    assert list(response.json()["rows"]) == ["1"]
    assert list(response.json()["rows"]["1"]) == [column]


def test_exact_values_are_appended(script: Client) -> None:
    """Whole numbers beyond 53 bits with a point, all digits of decimals, zeros of any exponent."""
    long = f"1{'0' * 5_000}e-5000"
    record = f'{{"i": 9007199254740993.0, "wide": 12345678901234567890123456789.123456789, "d": {long}, "f": 0e1000000000000000000}}'
    response = post(script, f"[{record}]")
    assert response.status_code == 201, response.content
