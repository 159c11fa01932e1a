"""Small drawings within text."""

import re

from controlplane.installation.assets.typeface import typeface_files
from dashboard.templatetags.design import bullet, preload_typeface, spark


def test_the_typeface_is_loaded_ahead_where_it_is_installed() -> None:
    name, link = "inter-latin.woff2", preload_typeface()
    assert bool(link) == (name in typeface_files())
    assert not link or ('rel="preload"' in link and 'as="font"' in link and "crossorigin" in link)


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


def test_a_sparkline_of_a_start_keeps_room_for_the_values_near_the_limit() -> None:
    """A value far above the limit leaves the drawing at its top."""
    far, near = spark([170.0, 1.0], "latency", 10.0), spark([25.0, 1.0], "latency", 10.0)
    limit = re.search(r'class="limit"[^>]*y1="([^"]+)"', near)
    assert limit is not None
    assert limit[0] in far
