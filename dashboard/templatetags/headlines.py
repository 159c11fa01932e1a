"""Template tags that show the headline of a page without measures of a cluster."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django import template

from dashboard.frame import headlines
from dashboard.frame.headline import Headline

register = template.Library()


def _tag(write: Callable[..., Headline]) -> None:
    """Register a function that returns a headline as a tag that shows it."""

    @wraps(write)
    def shown(*values: Any, **named: Any) -> dict[str, Headline]:
        return {"headline": write(*values, **named)}

    register.inclusion_tag("dashboard/_headline.html")(shown)


def page_headline(
    what: str, why: str = "", grade: str = "", icon: str = "", link: str = "", link_title: str = ""
) -> Headline:
    """Return a sentence, its second line, its grade or a drawing instead of that, and a link."""
    return Headline(what, why, grade, icon=icon, link=link, link_title=link_title)


for headline in (
    page_headline, headlines.tokens_headline, headlines.grants_headline,
    headlines.webhooks_headline, headlines.webhook_headline, headlines.system_headline,
    headlines.attached_headline, headlines.comparison_headline, headlines.ledger_headline,
):  # fmt: skip
    _tag(headline)
