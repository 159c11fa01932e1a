"""What a definition is, and which labels it explains."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word with its definition; `labels`: the labels of pages that the definition explains."""

    word: str
    text: str
    labels: tuple[str, ...] = ()
