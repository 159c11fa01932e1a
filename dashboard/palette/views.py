"""The results of the palette for a text, as options of its list."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from django.http import HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from controlplane.clusters.listing import visible_cluster
from controlplane.lists.search import MAX_LENGTH, search_objects
from controlplane.lists.search.hits import Match, match_of
from dashboard.guards import PageRequest, anyone_page
from dashboard.palette.entries import PaletteEntry, commands, entries_of, pages
from dashboard.responses import render_page

_MOST: Final = 40
_COMMANDS: Final = "Commands"
_PAGES: Final = "Pages"
_LAB: Final = "Lab"


@dataclass(frozen=True)
class Option:
    """An entry with the words of the search marked in its text."""

    entry: PaletteEntry
    marked: SafeString


@dataclass(frozen=True)
class OptionGroup:
    """Options below one heading."""

    title: str
    options: tuple[Option, ...]


@anyone_page
def index(request: PageRequest) -> HttpResponse:
    """Return the options for `text`: objects by cluster, commands, pages; the best first.

    `cluster`: the slug of the open cluster, whose objects, pages and commands are included first.
    Without a text, the options are pages and commands.
    """
    text = request.GET.get("text", "")[: MAX_LENGTH + 1]
    slug = request.GET.get("cluster", "")
    cluster = visible_cluster(request.actor, slug) if slug else None
    words = text.casefold().split()
    sections: dict[str, list[PaletteEntry]] = {}
    for hit in search_objects(request.actor, text, cluster):
        for entry in entries_of(hit):
            sections.setdefault(entry.cluster or _LAB, []).append(entry)
    for title, entries in (
        (_PAGES, pages(request.actor, cluster)), (_COMMANDS, commands(request.actor, cluster)),
    ):  # fmt: skip
        sections[title] = [entry for entry in entries if match_of(entry.named, words) is not None]
    groups = list(_bounded(_ordered(sections, words), words))
    return render_page(request, "_palette_options.html", {"groups": groups})


def _ordered(
    sections: dict[str, list[PaletteEntry]], words: list[str]
) -> dict[str, list[PaletteEntry]]:
    """Return the sections, that with the best match first; of equal ones, the Lab is last."""

    def key(section: tuple[str, list[PaletteEntry]]) -> tuple[int, bool]:
        title, entries = section
        matches = [match_of(entry.named, words) for entry in entries]
        best = min((match for match in matches if match is not None), default=Match.INSIDE)
        return best, title == _LAB

    return dict(sorted(sections.items(), key=key))


def _bounded(sections: dict[str, list[PaletteEntry]], words: list[str]) -> Iterator[OptionGroup]:
    """Yield groups with at most `_MOST` options in all."""
    left = _MOST
    for title, entries in sections.items():
        shown = entries[:left]
        left -= len(shown)
        if shown:
            yield OptionGroup(title, tuple(Option(row, marked(row.text, words)) for row in shown))


def marked(text: str, words: Iterable[str]) -> SafeString:
    """Return a text as HTML with the words of the search in `<mark>`."""
    pattern = "|".join(re.escape(word) for word in words)
    if not pattern:
        return format_html("{}", text)
    parts = re.split(f"({pattern})", text, flags=re.IGNORECASE)
    # Every second part is a separator: one of the words.
    return format_html_join(
        "", "{}", ((format_html("<mark>{}</mark>", part) if i % 2 else part,)
                   for i, part in enumerate(parts) if part),
    )  # fmt: skip
