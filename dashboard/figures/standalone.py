"""Standalone figures: HTML with Plotly and the colours of the light theme."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import plotly.io
from django.contrib.staticfiles.finders import find

from dashboard.figures.parts import Figure

TOKENS = "css/tokens.css"
_TOKEN = re.compile(r"(--[\w-]+):\s*([^;]+);")


def apply_theme(figure: Any) -> Any:
    """Return the figure with every "--token" replaced by its value in the light theme."""
    if isinstance(figure, dict):
        return {name: apply_theme(part) for name, part in figure.items()}
    if isinstance(figure, list):
        return [apply_theme(part) for part in figure]
    return _tokens()[figure] if isinstance(figure, str) and figure in _tokens() else figure


def drawing(figure: Figure, name: str, *, with_plotly: bool) -> str:
    """Return the HTML of a figure; the first one on a page includes Plotly's script."""
    html: str = plotly.io.to_html(
        {"data": apply_theme(figure["data"]), "layout": apply_theme(figure["layout"])},
        config=figure["config"],
        full_html=False,
        include_plotlyjs=with_plotly,
        default_height="32rem",
        div_id=name,
    )
    return html


@cache
def _tokens() -> dict[str, str]:
    path = find(TOKENS)
    if not isinstance(path, str):
        raise FileNotFoundError(TOKENS)
    # The dark theme stands behind the light one and repeats its names.
    light = Path(path).read_text(encoding="utf-8").partition("[data-theme=")[0]
    return dict(_TOKEN.findall(light))
