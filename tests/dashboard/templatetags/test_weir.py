"""Filters of templates."""

from dashboard.templatetags.weir import action_words, json_text


def test_a_stored_value_is_written_as_json() -> None:
    """Python's own notation cannot be pasted into other tools."""
    assert json_text({"via": "password", "roles": None}) == '{"via": "password", "roles": null}'
    assert json_text("Zürich") == '"Zürich"'


def test_actions_are_in_words() -> None:
    assert action_words("query.task_count") == "Query: task count"
    assert action_words("login") == "Login"
