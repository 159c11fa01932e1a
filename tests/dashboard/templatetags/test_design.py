"""Small drawings within text."""

from dashboard.templatetags.design import bullet, spark


def test_a_bullet_has_a_tick_at_its_limit() -> None:
    drawn = bullet(0.5, 1.0, "warn")
    assert 'width="41.67%"' in drawn
    assert 'x1="83.33%"' in drawn
    assert bullet(0.0, None) == ""


def test_a_sparkline_says_what_it_shows_and_escapes_it() -> None:
    drawn = spark([1.0, 2.0, None, 3.0], "<b>rate</b>")
    assert "<b>" not in drawn
    assert drawn.count("M") == 2


def test_one_value_is_no_line() -> None:
    assert spark([1.0], "rate") == ""
