"""Write the table of growth in docs/operations/limits.md: `python -m docs.retention_table`."""

import os
from pathlib import Path

import django

PAGE = Path(__file__).parent / "operations" / "limits.md"
BEGIN = "<!-- what grows: written by python -m docs.retention_table -->\n"
END = "<!-- end of what grows -->\n"


def table() -> str:
    """Return what grows, with its bound, as Markdown; Django must be set up."""
    from controlplane.background.retention.kinds import KINDS, OTHERS  # noqa: PLC0415 - as above

    rows = [
        f"| {kind.name} | database: {', '.join(kind.models or kind.tables)} |"
        f" {kind.bound.format(f'`{kind.variable}`')} | {kind.always} |"
        for kind in KINDS
    ]
    rows += [f"| {other.name} | {other.place} | {other.bound} | |" for other in OTHERS]
    head = ["| what | where | kept | never deleted |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def written(text: str) -> str:
    """Return the text of the page with the table between its marks."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
