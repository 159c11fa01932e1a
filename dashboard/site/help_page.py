"""Help: the words of Weir and the keys of its pages."""

from django.http import HttpResponse

from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import show
from dashboard.words import WORDS


@anyone_page
def index(request: PageRequest) -> HttpResponse:
    """Show the glossary."""
    return show(request, "help.html", {"words": WORDS})
