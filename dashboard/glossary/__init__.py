"""The glossary of the help page and of tooltips, an extract of docs/glossary.md."""

from typing import Final

from dashboard.glossary.measures import MEASURES
from dashboard.glossary.terms import Term
from dashboard.glossary.words import WORDS as PLAIN_WORDS

WORDS: Final = (*PLAIN_WORDS, *MEASURES)
_BY_LABEL: Final = {label.lower(): term for term in WORDS for label in (term.word, *term.labels)}


def term_of(label: str) -> Term | None:
    """Return the term that explains a label of a page, None if the glossary has none."""
    return _BY_LABEL.get(label.strip().lower())


__all__ = ["MEASURES", "WORDS", "Term", "term_of"]
