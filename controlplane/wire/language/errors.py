"""What is wrong with an expression, and where in its text."""

from controlplane.wire.errors import WireError


class BadExpression(WireError):
    """Text that is no expression over the stream: `why`, and the characters [start, end)."""

    def __init__(self, text: str, why: str, start: int = 0, end: int | None = None) -> None:
        self.text = text
        self.why = why
        self.start = min(start, len(text))
        self.end = len(text) if end is None else min(max(end, self.start + 1), len(text))
        super().__init__(f"{why}, at character {self.start + 1}")

    def pointed(self) -> str:
        """Return the line of the text that is wrong, with marks below it."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        line = self.text[begin:].partition("\n")[0]
        marks = max(1, min(self.end - begin, len(line)) - (self.start - begin))
        return f"{line}\n{' ' * (self.start - begin)}{'^' * marks}"
