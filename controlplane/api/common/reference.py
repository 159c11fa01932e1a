"""The page with the reference of the API, in the design of the dashboard's pages."""

from ninja.openapi.docs import Swagger


class ApiReference(Swagger):
    """Swagger UI inside Weir's own page: a language, a title, and both themes."""

    template = "dashboard/api_reference.html"
