"""Errors in expressions, with their place in the text."""

from dataclasses import dataclass

from controlplane.wire.errors import WireError


@dataclass(frozen=True)
class Place:
    """A place in a text: its line, marks below the line, and the character, counted from 1."""

    line: str
    marks: str
    character: int


class Fault(str):
    """A message about a text that also has the place in it."""

    __slots__ = ("place",)

    place: Place

    @classmethod
    def of(cls, message: str, place: Place) -> "Fault":
        """Return a message with its place."""
        fault = cls(message)
        fault.place = place
        return fault


def place_of(message: str) -> Place | None:
    """Return the place that a message has, None for one without."""
    return message.place if isinstance(message, Fault) else None


def reworded(message: str, words: str) -> str:
    """Return other words with the place that a message has."""
    place = place_of(message)
    return words if place is None else Fault.of(words, place)


class BadExpression(WireError):
    """Text that is no expression over the stream: `why`, and the characters [start, end)."""

    def __init__(self, text: str, why: str, start: int = 0, end: int | None = None) -> None:
        self.text = text
        self.why = why
        self.start = min(start, len(text))
        self.end = len(text) if end is None else min(max(end, self.start + 1), len(text))
        super().__init__(f"{why}, at character {self.start + 1}")

    @property
    def fault(self) -> Fault:
        """Return why, with the place in the text."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        line = self.text[begin:].partition("\n")[0]
        marks = max(1, min(self.end - begin, len(line)) - (self.start - begin))
        pointer = f"{' ' * (self.start - begin)}{'^' * marks}"
        return Fault.of(self.why, Place(line, pointer, self.start + 1))
