"""Responses have their content type; their policy allows no other host."""

import pytest
from django.test import Client


def test_the_policy_of_contents_allows_no_other_host(client: Client, db: None) -> None:
    directives = client.get("/healthz")["Content-Security-Policy"].split(";")
    sources = {source for text in directives for source in text.split()[1:]}
    assert not [source for source in sources if "//" in source or source in {"*", "https:"}]
    assert {"connect-src", "form-action", "frame-ancestors"} <= {
        text.split()[0] for text in directives if text.strip()
    }


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/healthz", "text/plain"), ("/api/v1/nothing", "application/problem+json"),
     ("/api/v1/openapi.json", "application/json"), ("/nothing/", "text/html")],
)  # fmt: skip
def test_other_responses_have_their_content_type(operating: Client, path: str, kind: str) -> None:
    assert operating.get(path)["Content-Type"].partition(";")[0] == kind
