"""The template tag that explains a measure: its label, with the definition of the glossary."""

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from dashboard.frame.keys import KEYS, Key
from dashboard.glossary import term_of

register = template.Library()


@register.simple_tag
def term(label: str, in_link: str | bool = False, of: str = "") -> SafeString:
    """Return a label that shows its definition on hover, focus and touch; others unchanged.

    `in_link`: True, or an address, inside a link or button, which takes the focus; elsewhere the
    label is a button. `of`: the label of the glossary, by default the same.
    """
    known = term_of(of or label)
    if known is None:
        return SafeString(conditional_escape(label))
    if in_link:
        return format_html('<span class="term" data-term="{}">{}</span>', known.text, label)
    return format_html(
        '<button type="button" class="term" data-term="{}">{}</button>', known.text, label
    )


@register.simple_tag
def declared_keys() -> tuple[Key, ...]:
    """Return the keys of all pages."""
    return KEYS
