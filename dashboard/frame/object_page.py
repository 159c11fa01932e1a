"""Headline and tiles of the page of one object, such as a query or a stream."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ObjectHeadline:
    """One sentence about an object, its cause, and its level with the word of its chip."""

    text: str
    why: str
    grade: str
    chip: str


@dataclass(frozen=True)
class ObjectTile:
    """A tile; `limit`: of `value`, None without one; `part`: of 1, for a bar without a limit."""

    title: str
    number: str
    unit: str
    note: str
    below: str = ""
    value: float | None = None
    limit: float | None = None
    grade: str = ""
    part: float | None = None
