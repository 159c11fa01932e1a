"""Every example of docs/queries.md is checked as a submitted query is; its tables are generated."""

import json
import re
import struct
from typing import Any

import numpy as np
import pytest

from controlplane.api.common.examples import ORDERS_SCHEMA
from controlplane.catalog.query_checks import Checked, QueryChecks
from controlplane.cli.refusals import fault_lines
from controlplane.queries.spec import QuerySpec
from controlplane.wire.language.registered import registered, registered_aggregate
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import StreamSchema
from docs.query_tables import MARK, PAGE, tables

ORDERS = StreamSchema.from_json(ORDERS_SCHEMA)
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
QUERIES = [json.loads(body) for kind, body in BLOCKS if kind == "json"]
WRONG = [query for query in QUERIES if "itmes" in json.dumps(query)]
PLAIN = [body for kind, body in BLOCKS if kind == "text"]


def checked(query: dict[str, Any], tasks: int = 1) -> Checked:
    right = query.get("right", ())
    spec = QuerySpec("q", ["orders"], QueryText.from_json(query), tasks=tasks, right=right)
    return QueryChecks(dict.fromkeys(spec.reads, 1), (), lambda _: ORDERS.kinds).check_query(spec)


@pytest.fixture(scope="module", autouse=True)
def own_functions() -> None:
    """What the page registers, registered."""
    (code,) = (body for kind, body in BLOCKS if kind == "python")
    exec(compile(code, str(PAGE), "exec"), {"__name__": "functions_of_the_page"})


@pytest.mark.parametrize("query", [query for query in QUERIES if query not in WRONG])
def test_an_example_is_a_query(query: dict[str, Any]) -> None:
    found = checked(query)
    assert not found.fields
    assert found.computation is not None


def test_faults_are_told_as_the_page_says() -> None:
    (wrong,) = WRONG
    told = "\n".join(fault_lines(checked(wrong).fields))
    assert told.strip() in [body.strip() for body in PLAIN]


def test_the_functions_of_the_page_compute() -> None:
    price, mean = registered("unit_price"), registered_aggregate("geometric_mean")
    assert price is not None
    assert mean is not None
    assert price.call(np.array([6.0]), np.array([4])).tolist() == [1.5]
    work = mean.work
    state = work.merge(work.partial(np.array([1.0, 4.0])), work.partial(np.array([2.0, 0.0])))
    assert work.result(state) == pytest.approx(2.0)
    assert work.result(struct.pack("<dq", 0.0, 0)) is None


def test_the_tables_are_those_of_the_language() -> None:
    """`python -m docs.query_tables` writes them anew."""
    assert TEXT[TEXT.index(MARK) + len(MARK) :] == tables()
