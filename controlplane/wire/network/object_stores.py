"""Object stores: an endpoint in the list of the site, keys by reference, and limits of time."""

from typing import Any, Final

from pyarrow import fs

from controlplane.wire.network.destinations import check_endpoint
from controlplane.wire.network.secrets import NoSecret, SecretOf, named_secret

# A store must connect, and send a byte, in so many seconds; clients try three times.
CONNECT_S: Final = 5
REQUEST_S: Final = 10


def access_keys(owner: SecretOf, secret: str) -> tuple[str, str] | None:
    """Return access key and secret key, None without a secret: then the machine's identity counts.

    Raises `NoSecret`, also for a secret of another form.
    """
    if not secret:
        return None
    access, _, key = named_secret(owner, secret).partition(":")
    if not access or not key:
        raise NoSecret(f"The secret {secret} is not access-key:secret-key")
    return access, key


def object_store(owner: SecretOf, secret: str, endpoint: str, region: str) -> fs.FileSystem:
    """Return the client of a store. Raises `NotAllowed` for its endpoint, `NoSecret`, `OSError`."""
    check_endpoint(endpoint)
    options: dict[str, Any] = {"connect_timeout": CONNECT_S, "request_timeout": REQUEST_S}
    if keys := access_keys(owner, secret):
        options["access_key"], options["secret_key"] = keys
    if endpoint:
        options["scheme"], _, options["endpoint_override"] = endpoint.partition("://")
    return fs.S3FileSystem(region=region or None, **options)
