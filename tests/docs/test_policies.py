"""The page of policies has the loops, reasons and settings that there are."""

from docs.policy_tables import MARK, PAGE, tables

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_code() -> None:
    """`python -m docs.policy_tables` writes them anew."""
    assert TEXT[TEXT.index(MARK) + len(MARK) :] == tables()


def test_every_setting_that_the_text_names_is_one() -> None:
    for name in ("auto_kinds", "auto_asked", "auto_record_error", "cooldown_s", "dead_band"):
        assert f"`{name}`" in TEXT[: TEXT.index(MARK)]
        assert f"| `{name}` |" in tables()
