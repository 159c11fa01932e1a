"""HTTP sessions with the provider of single sign-on: each connection uses a checked address.

The metadata of a provider name further addresses, and any of them may redirect. They must be at the
host and port of the issuer, public by https, or destinations of the site. No proxy of the
environment is used.
"""

from typing import Any
from urllib.parse import urlsplit

from authlib.integrations.django_client import DjangoOAuth2App
from authlib.integrations.requests_client import OAuth2Session
from django.conf import settings
from requests import ConnectionError, PreparedRequest  # noqa: A004 - of requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool

from controlplane.wire.network.destinations import PORTS, addresses, place_of


class _Adapter(HTTPAdapter):
    def get_connection_with_tls_context(
        self, request: PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> HTTPConnectionPool:
        parts = urlsplit(str(request.url))
        place, keys = self.build_connection_pool_key_attributes(request, verify, cert)
        port = parts.port or PORTS[parts.scheme]
        issuer = place_of(settings.OIDC_ISSUER)
        try:
            place["host"] = addresses(parts.scheme, str(parts.hostname), port, issuer)[0]
        except OSError as refusal:
            raise ConnectionError(refusal) from refusal
        request.headers["Host"] = parts.netloc.rpartition("@")[2]
        if parts.scheme == "https":
            keys |= {"server_hostname": parts.hostname, "assert_hostname": parts.hostname}
        return self.poolmanager.connection_from_host(**place, pool_kwargs=keys)

    def request_url(self, request: PreparedRequest, proxies: Any) -> str:
        return super().request_url(request, None)


class _Session(OAuth2Session):  # type: ignore[misc]
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for prefix in ("http://", "https://"):
            self.mount(prefix, _Adapter())


class ProviderApp(DjangoOAuth2App):  # type: ignore[misc]
    """Authlib's client with checked connections."""

    client_cls = _Session
