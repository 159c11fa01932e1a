"""Colours of the design tokens: distinct for all eyes, and readable on the page."""

import re
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tests.support.colours import DEUTERANOPIA, PROTANOPIA, Vector, contrast, delta_e, seen

TOKENS: Final = (Path(__file__).parents[2] / "static/css/tokens.css").read_text()
THEMES: Final = ("light", "dark")
SERIES: Final = tuple(f"series-{number}" for number in range(1, 7))
# Graphics need 3:1, text 4.5:1 (WCAG 1.4.11, 1.4.3).
GRAPHIC: Final = 3.0
TEXT: Final = 4.5


def colour(token: str, theme: str) -> str:
    """Return the colour of a token in a theme, as #rrggbb."""
    pair = re.search(rf"^ +--{token}: light-dark\((#\w{{6}}), (#\w{{6}})\)", TOKENS, re.MULTILINE)
    assert pair is not None, token
    return pair[1 + THEMES.index(theme)]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eyes", [None, PROTANOPIA, DEUTERANOPIA], ids=["all", "protan", "deutan"])
def test_series_are_distinct(theme: str, eyes: Vector | None) -> None:
    values = {name: seen(colour(name, theme), eyes) for name in SERIES}
    least = {pair: delta_e(values[pair[0]], values[pair[1]]) for pair in combinations(values, 2)}
    assert min(least.values()) >= 10, min(least, key=lambda pair: least[pair])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", [*SERIES, "before", "limit", "field-line"])
def test_graphics_stand_out_from_page_and_cards(theme: str, name: str) -> None:
    for ground in ("page", "surface"):
        assert contrast(colour(name, theme), colour(ground, theme)) >= GRAPHIC, ground


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["ink", "muted", "accent", "good", "warn", "bad"])
def test_text_is_readable(theme: str, name: str) -> None:
    for ground in ("page", "surface", "raised", "sunken"):
        assert contrast(colour(name, theme), colour(ground, theme)) >= TEXT, ground
    if f"--{name}-soft" in TOKENS:
        assert contrast(colour(name, theme), colour(f"{name}-soft", theme)) >= TEXT


def test_the_difference_is_that_of_the_published_pairs() -> None:
    """Pairs 1, 7, 19 and 25 of Sharma, Wu and Dalal, table 1."""
    pairs = [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((50, 2.5, 0), (50, 3.2592, 0.3350), 1.0000),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ]
    for first, second, published in pairs:
        difference = delta_e(np.array(first, float), np.array(second, float))
        assert difference == pytest.approx(published, abs=1e-4)


def test_contrast_is_that_of_black_on_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
