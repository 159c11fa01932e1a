"""Messages about a text that have their place in it."""

from dataclasses import dataclass


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
