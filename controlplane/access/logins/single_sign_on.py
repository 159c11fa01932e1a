"""Single sign-on by an OpenID Connect provider: authorization code flow with PKCE.

Authlib requests the provider's metadata and tokens, and validates the ID token (signature, issuer,
audience, expiry, nonce). A user is identified by issuer and subject, never by a name or an email,
which a provider may give to another person. The groups of the provider decide the role at each
log-in.
"""

import logging
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import DjangoOAuth2App, OAuth
from authlib.integrations.requests_client import OAuth2Session
from django.conf import settings
from django.contrib.auth import authenticate, login
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import HttpRequest, HttpResponseRedirect
from django.utils import timezone
from joserfc.errors import JoseError
from requests import ConnectionError, PreparedRequest, RequestException  # noqa: A004 - of requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool

from controlplane.access import audit
from controlplane.access.client_address import client_address
from controlplane.access.logins import login_sessions
from controlplane.access.logins.reauthentication import record_confirmation
from controlplane.access.request_ids import request_id
from controlplane.access.roles import ROLES, Automatic, actor_of
from controlplane.errors import Away, Conflict
from controlplane.installation.env import EnvironmentValueError
from controlplane.models import ExternalIdentity
from controlplane.wire.network.destinations import PORTS, addresses, place_of

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 5
# How long a person may take at the provider; the anonymous session is deleted then.
FLOW_S: Final = 600
# By how much the clocks of Weir and the provider may differ.
CLOCK_S: Final = 60
MAX_NAME: Final = 150
# In the session of a user who confirms by another log-in.
_AGAIN: Final = "sso_again"
Claims = Mapping[str, Any]


class SingleSignOnBackend(ModelBackend):
    """Authenticates by the claims of a validated ID token, never by a password."""

    def authenticate(  # type: ignore[override]
        self, request: HttpRequest | None, claims: Claims | None = None, **kwargs: Any
    ) -> User | None:
        """Return the user of the claims, None without claims."""
        return None if claims is None else _user_of(claims)


def is_enabled() -> bool:
    """Return True if a provider is configured."""
    return bool(settings.OIDC_ISSUER)


def check() -> None:
    """Raise `EnvironmentValueError` for an incomplete configuration."""
    if not is_enabled():
        return
    if not settings.OIDC_CLIENT_ID:
        raise EnvironmentValueError("WEIR_OIDC_CLIENT_ID", "", "is required with WEIR_OIDC_ISSUER")
    for group, role in settings.OIDC_ROLES.items():
        if role not in ROLES:
            wanted = f"must name one of the roles {', '.join(ROLES)}"
            raise EnvironmentValueError("WEIR_OIDC_ROLES", f"{group}={role}", wanted)


def begin(request: HttpRequest, callback: str, *, again: bool = False) -> HttpResponseRedirect:
    """Return the redirect to the provider, which redirects to `callback`. Raises `Away`.

    `again`: the user of the session confirms to be present by another log-in at the provider.
    """
    if not request.user.is_authenticated:
        request.session.set_expiry(FLOW_S)
    try:
        wanted = _requested_strength()
        if again:
            request.session[_AGAIN] = True
            wanted |= {"prompt": "login", "max_age": 0}
        response: HttpResponseRedirect = _client().authorize_redirect(request, callback, **wanted)
    except (AuthlibBaseError, RequestException, ValueError) as error:
        raise _away(error) from error
    return response


def finish(request: HttpRequest) -> User:
    """Log in the user that the provider has authenticated, and return it.

    After `begin` with `again` the session of the user continues, confirmed. Raises `Conflict` with
    the code not_authenticated for an invalid response of the provider, weak_login, old_login or
    not_confirmed for a log-in there that does not suffice, or no_role for a user without a group
    that has a role, and `Away`.
    """
    again = request.session.pop(_AGAIN, False)
    try:
        claims = _claims(request, timedelta(0) if again else settings.OIDC_MAX_AGE or None)
    except RequestException as error:
        raise _away(error) from error
    except (AuthlibBaseError, JoseError, ValueError, TypeError, KeyError) as error:
        # TypeError: Authlib has no state for a response that this session did not request.
        logger.warning("Single sign-on: the response of the provider is invalid: %r", error)
        text = "The provider did not confirm who you are: log in again"
        raise Conflict("not_authenticated", text) from error
    user = authenticate(request, claims=claims)
    if user is None:
        text = "Your account has no role in Weir: ask an administrator"
        raise _refused(request, claims, Conflict("no_role", text))
    if not again:
        login_sessions.require_room(user)
        login(request, user)
    elif user == request.user:
        record_confirmation(actor_of(request), request.session)
    else:
        text = "Log in at the provider once more, as the same user"
        raise _refused(request, claims, Conflict("not_confirmed", text))
    return user


def role_of(groups: object) -> str:
    """Return the highest role of a list of groups, "" for none."""
    names = [groups] if isinstance(groups, str) else groups
    if not isinstance(names, list | tuple):
        return ""
    roles = {settings.OIDC_ROLES.get(str(name), "") for name in names}
    return next((role for role in reversed(ROLES) if role in roles), "")


def _claims(request: HttpRequest, max_age: timedelta | None) -> Claims:
    """Return the validated claims; groups that the ID token lacks are read at the provider."""
    client = _client()
    token = client.authorize_access_token(request)
    # Of the signed ID token alone: the user info does not describe the log-in.
    claims = dict(token["userinfo"])
    _check_strength(request, claims, max_age)
    if settings.OIDC_GROUPS_CLAIM not in claims and client.server_metadata.get("userinfo_endpoint"):
        more = client.userinfo(token=token)
        if more.get("sub") != claims["sub"]:
            raise ValueError("the user info is of another subject")
        claims = {**more, **claims}
    return claims


def _requested_strength() -> dict[str, str | int]:
    """Return the parameters of the request about the log-in (OpenID Connect Core, 3.1.2.1)."""
    wanted: dict[str, str | int] = {}
    if settings.OIDC_ACR_VALUES:
        wanted["acr_values"] = " ".join(settings.OIDC_ACR_VALUES)
    if settings.OIDC_MAX_AGE:
        wanted["max_age"] = round(settings.OIDC_MAX_AGE.total_seconds())
    return wanted


def _check_strength(request: HttpRequest, claims: Claims, max_age: timedelta | None) -> None:
    """Raise `Conflict` if the log-in at the provider is of another class, or too long ago.

    A provider may ignore what was requested (OpenID Connect Core, 5.5.1.1).
    """
    allowed, acr = settings.OIDC_ACR_VALUES, claims.get("acr")
    if allowed and acr not in allowed:
        text = "Weir requires another method of log-in at the provider: choose it there"
        data = {"acr": str(acr or "none")[:100], "required": " or ".join(allowed)}
        raise _refused(request, claims, Conflict("weak_login", text, data))
    if max_age is None:
        return
    since = claims.get("auth_time")
    longest_s = max_age.total_seconds() + CLOCK_S
    is_time = isinstance(since, int | float) and not isinstance(since, bool)
    if not is_time or not -CLOCK_S <= timezone.now().timestamp() - float(str(since)) <= longest_s:
        text = "Your log-in at the provider is too long ago: log in there again"
        raise _refused(request, claims, Conflict("old_login", text))


def _refused(request: HttpRequest, claims: Claims, refusal: Conflict) -> Conflict:
    """Record a refused person of the provider, and return the refusal."""
    label = f"subject {claims['sub']}"[:200]
    actor = Automatic("anonymous", client_address(request), request_id(request))
    audit.record(actor, "login.refused", label, after={"reason": refusal.code, **refusal.data})
    return refusal


@transaction.atomic
def _user_of(claims: Claims) -> User | None:
    """Return the user of issuer and subject with the role of its groups; None without a role."""
    key = {"issuer": str(claims["iss"]), "subject": str(claims["sub"])}
    identity = ExternalIdentity.objects.select_related("user").filter(**key).first()
    role = role_of(claims.get(settings.OIDC_GROUPS_CLAIM))
    if identity is None:
        if not role:
            return None
        user = User(username=_free_name(claims), email=str(claims.get("email", ""))[:254])
        user.set_unusable_password()
        user.save()
        ExternalIdentity.objects.create(user=user, **key)
    else:
        user = identity.user
    _set_role(user, role)
    return user if role and user.is_active else None


def _set_role(user: User, role: str) -> None:
    present = set(user.groups.filter(name__in=ROLES).values_list("name", flat=True))
    wanted = {role} if role else set()
    if present == wanted:
        return
    user.groups.remove(*Group.objects.filter(name__in=present - wanted))
    for name in wanted - present:
        user.groups.add(Group.objects.get_or_create(name=name)[0])
    actor = Automatic("single sign-on")
    before, after = {"role": ", ".join(sorted(present))}, {"role": role}
    audit.record(actor, "user.role", f"user {user.username}", before=before, after=after)


def _free_name(claims: Claims) -> str:
    """Return the user's name at the provider, with a number if a user of Weir has it."""
    wanted = str(claims.get(settings.OIDC_USER_CLAIM) or claims["sub"])
    name = "".join(c for c in wanted if c.isalnum() or c in "@.+-_")[: MAX_NAME - 8] or "user"
    taken = set(User.objects.filter(username__startswith=name).values_list("username", flat=True))
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(candidate for candidate in (name, *numbered) if candidate not in taken)


def _client() -> Any:
    """Return Authlib's client. Raises `ValueError` if the metadata are of another issuer.

    OpenID Connect Discovery 1.0, section 4.3: otherwise one provider could name the keys and
    addresses of another.
    """
    issuer = settings.OIDC_ISSUER
    client = _registered(issuer, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET)
    stated = str(client.load_server_metadata().get("issuer", ""))
    if stated.rstrip("/") != issuer:
        raise ValueError(f"the metadata of {issuer} are of the issuer {stated!r}")
    return client


@lru_cache(maxsize=4)
def _registered(issuer: str, client_id: str, secret: str) -> Any:
    """Return Authlib's client, which keeps the metadata and keys of the provider."""
    return OAuth().register(
        "weir",
        client_cls=ProviderApp,
        client_id=client_id,
        client_secret=secret or None,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={
            "scope": settings.OIDC_SCOPES,
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_S,
        },
    )


def _away(error: Exception) -> Away:
    logger.warning("Single sign-on: the provider does not answer: %r", error)
    return Away("provider_away", "The provider of single sign-on does not answer", TIMEOUT_S)


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
    """Authlib's client, each of whose connections uses a checked address.

    The metadata of a provider name further addresses, and any of them may redirect. They must be at
    the host and port of the issuer, public by https, or destinations of the site. No proxy of the
    environment is used.
    """

    client_cls = _Session
