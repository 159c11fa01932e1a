"""The help page: glossary and keyboard shortcuts."""

from django.http import HttpResponse

from dashboard.glossary import WORDS
from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import render_page


@anyone_page
def index(request: PageRequest) -> HttpResponse:
    """Show the glossary."""
    return render_page(request, "help.html", {"words": WORDS})
