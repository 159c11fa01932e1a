"""The page of limits lists everything that grows, with its bound."""

from docs.retention_table import PAGE, written


def test_the_table_is_that_of_the_declaration() -> None:
    """`python -m docs.retention_table` writes it."""
    text = PAGE.read_text(encoding="utf-8")
    assert written(text) == text
