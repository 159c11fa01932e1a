"""Template tags that show the headline of a page without measures of a cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.utils import timezone

from controlplane.health.liveness.status import SiteStatus
from controlplane.integrations.attached_list import JobRow
from controlplane.models import ApiToken
from controlplane.proposals.comparison_table import Compared
from dashboard.frame import headlines
from dashboard.frame.headline import Headline

register = template.Library()
_TEMPLATE = "dashboard/_headline.html"


def _context(headline: Headline) -> dict[str, Headline]:
    return {"headline": headline}


@register.inclusion_tag(_TEMPLATE)
def page_headline(
    what: str, why: str = "", grade: str = "", icon: str = "", link: str = "", link_title: str = ""
) -> dict[str, Headline]:
    """Show a sentence, its second line, its grade or a drawing instead of that, and a link."""
    return _context(Headline(what, why, grade, icon=icon, link=link, link_title=link_title))


@register.inclusion_tag(_TEMPLATE)
def tokens_headline(tokens: Sequence[ApiToken], user: str) -> dict[str, Headline]:
    """Show the headline of the tokens of a user."""
    return _context(headlines.tokens_headline(tokens, user, timezone.now()))


@register.inclusion_tag(_TEMPLATE)
def grants_headline(total: int, others: int) -> dict[str, Headline]:
    """Show the headline of the grants."""
    return _context(headlines.grants_headline(total, others))


@register.inclusion_tag(_TEMPLATE)
def webhooks_headline(rows: Sequence[Mapping[str, Any]]) -> dict[str, Headline]:
    """Show the headline of the webhooks."""
    return _context(headlines.webhooks_headline(rows))


@register.inclusion_tag(_TEMPLATE)
def webhook_headline(row: Mapping[str, Any]) -> dict[str, Headline]:
    """Show the headline of a webhook."""
    return _context(headlines.webhook_headline(row))


@register.inclusion_tag(_TEMPLATE)
def system_headline(status: SiteStatus) -> dict[str, Headline]:
    """Show the headline of the processes of Weir."""
    return _context(headlines.system_headline(status))


@register.inclusion_tag(_TEMPLATE)
def attached_headline(rows: Sequence[JobRow], total: int) -> dict[str, Headline]:
    """Show the headline of the attached jobs."""
    return _context(headlines.attached_headline(rows, total))


@register.inclusion_tag(_TEMPLATE)
def comparison_headline(table: Compared) -> dict[str, Headline]:
    """Show the headline of a comparison."""
    return _context(headlines.comparison_headline(table))


@register.inclusion_tag(_TEMPLATE)
def ledger_headline(records: Sequence[Mapping[str, Any]]) -> dict[str, Headline]:
    """Show the headline of the ledger."""
    return _context(headlines.ledger_headline(records))
