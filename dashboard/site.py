"""The help page and the page of internal errors."""

from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from controlplane.health.disks import full_disks
from dashboard.glossary import WORDS
from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import render_page


@anyone_page
def help_page(request: PageRequest) -> HttpResponse:
    """Show the keys and the glossary in alphabetical order."""
    words = sorted(WORDS, key=lambda term: term.word.lower())
    by_letter = groupby(words, key=lambda term: term.word[0].upper())
    letters = [{"name": letter, "words": list(group)} for letter, group in by_letter]
    return render_page(request, "help.html", {"words": words, "letters": letters})


def server_error(request: HttpRequest) -> HttpResponse:
    """Render an internal error without the database; 503 if a disk is full."""
    disks = full_disks()
    return render(None, "500.html", {"full_disks": disks}, status=503 if disks else 500)
