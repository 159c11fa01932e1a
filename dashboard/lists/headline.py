"""The headline of a list page."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ListHeadline:
    """A sentence about the rows of a list, with its grade, and at most one link."""

    what: str
    grade: str = ""
    why: str = ""
    link: str = ""
    link_title: str = ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, given in the plural: 1 query, 2,000 queries."""
    if number != 1:
        return f"{number:,} {noun}"
    return f"1 {noun[:-3]}y" if noun.endswith("ies") else f"1 {noun.removesuffix('s')}"
