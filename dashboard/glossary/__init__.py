"""The glossary of the help page and of tooltips, an extract of docs/glossary.md."""

from typing import Final

from controlplane.lists.kinds import KINDS
from dashboard.glossary.measures import MEASURES
from dashboard.glossary.terms import Term
from dashboard.glossary.words import WORDS as PLAIN_WORDS

WORDS: Final = (*PLAIN_WORDS, *MEASURES)
_EXPLAINED: Final = {label.lower(): term for term in WORDS for label in (term.word, *term.labels)}
# The figures of lists that have no word of their own, as their columns declare them.
FIGURES: Final = tuple(
    Term(column.title, f"Of {kind.noun}: {column.description}.")
    for kind in KINDS.values()
    for column in kind.shown
    if column.is_figure and (column.explained_by or column.title).lower() not in _EXPLAINED
)
_BY_LABEL: Final = {term.word.lower(): term for term in FIGURES} | _EXPLAINED


def term_of(label: str) -> Term | None:
    """Return the term that explains a label of a page, None if the glossary has none."""
    return _BY_LABEL.get(label.strip().lower())
