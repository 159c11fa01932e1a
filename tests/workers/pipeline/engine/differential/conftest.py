"""One connection to DuckDB for all tests of a process."""

import duckdb
import pytest

from tests.workers.pipeline.engine.differential.duck import connection


@pytest.fixture(scope="session")
def client() -> duckdb.DuckDBPyConnection:
    """Return a connection with the macros and functions of `sql.py`."""
    return connection()
