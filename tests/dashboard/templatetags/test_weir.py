"""Filters of templates."""

from dashboard.templatetags.weir import json_text


def test_a_stored_value_is_written_as_json() -> None:
    """Python's own notation cannot be pasted into other tools."""
    assert json_text({"via": "password", "roles": None}) == '{"via": "password", "roles": null}'
    assert json_text("Zürich") == '"Zürich"'
