"""The API's description of itself: a summary, examples and refusals for every operation."""

from ninja import NinjaAPI


class DocumentedAPI(NinjaAPI):
    """The API."""
