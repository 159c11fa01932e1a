"""Typed readers of the environment; errors have the name, the value and what is allowed."""

import ipaddress
import os
import secrets
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from controlplane.wire.network import destinations
from controlplane.wire.network.destinations import LIST, SETTING
from controlplane.wire.network.secrets import read_secret
from controlplane.wire.redaction import without_password

ROOT = Path(__file__).resolve().parents[2]

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


class EnvironmentValueError(ValueError):
    """A variable of the environment holds a value that Weir cannot use."""

    def __init__(self, name: str, value: str, wanted: str) -> None:
        self.name = name
        super().__init__(f"{name}={without_password(value)!r}: {wanted}")


def text(name: str, default: str = "") -> str:
    """Return the variable without outer blanks; unset or blank gives the default."""
    return os.environ.get(name, "").strip() or default


def integer(name: str, default: int, minimum: int = 0, maximum: int = 2**31 - 1) -> int:
    """Return a whole number from minimum to maximum."""
    value = text(name, str(default))
    try:
        number = int(value)
    except ValueError:
        raise EnvironmentValueError(name, value, "must be a whole number") from None
    if not minimum <= number <= maximum:
        raise EnvironmentValueError(name, value, f"must be from {minimum} to {maximum}")
    return number


def flag(name: str, *, default: bool = False) -> bool:
    """Return a switch: 1, true, yes, on against 0, false, no, off."""
    value = text(name, "1" if default else "0").lower()
    if value not in TRUE | FALSE:
        raise EnvironmentValueError(name, value, "must be 1, true, yes, on, 0, false, no or off")
    return value in TRUE


def choice(name: str, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words, the first if the variable is unset."""
    value = text(name, allowed[0])
    if value not in allowed:
        raise EnvironmentValueError(name, value, f"must be {' or '.join(allowed)}")
    return value


def words(name: str, default: str) -> list[str]:
    """Return the comma-separated words of a variable."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def url(name: str, default: str, schemes: tuple[str, ...]) -> str:
    """Return a URL with one of the schemes, also from the file that `<name>_FILE` names."""
    value = secret(name) or default
    if value.partition("://")[0] not in schemes or "://" not in value:
        wanted = f"must begin with one of {', '.join(schemes)} and ://"
        raise EnvironmentValueError(name, value, wanted)
    return value


def secret(name: str) -> str:
    """Return a secret as `wire.network.secrets` does. Raises `EnvironmentValueError`."""
    try:
        return read_secret(name)
    except OSError as error:
        file = text(f"{name}_FILE")
        raise EnvironmentValueError(f"{name}_FILE", file, f"cannot be read: {error}") from None


def email(name: str) -> tuple[str, int, str, str, str]:
    """Return host, port, user, password and encryption of smtp://user:password@host:587.

    smtp: STARTTLS, smtps: TLS, smtp+plain: none, "" without the variable.
    """
    url = secret(name)
    if not url:
        return "", 0, "", "", ""
    wanted = "must be smtp://, smtps:// or smtp+plain://, with user:password@ and host:port"
    try:
        parts = urlsplit(url)
        encryption, port = _MAIL[parts.scheme]
        host, given = parts.hostname, parts.port
    except (KeyError, ValueError):
        raise EnvironmentValueError(name, "…", wanted) from None
    if not host:
        raise EnvironmentValueError(name, "…", wanted)
    user, password = (unquote(text or "") for text in (parts.username, parts.password))
    return host, given or port, user, password, encryption


_MAIL: Final = {"smtp": ("starttls", 587), "smtps": ("tls", 465), "smtp+plain": ("", 25)}


def networks(name: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Return the networks (CIDR) or addresses of a comma-separated variable."""
    given = []
    for word in words(name, ""):
        try:
            given.append(ipaddress.ip_network(word))
        except ValueError as error:
            raise EnvironmentValueError(name, word, f"must be a network: {error}") from None
    return tuple(given)


def mapping(name: str) -> dict[str, str]:
    """Return the pairs `key=value` of a comma-separated variable; a key may contain `=`."""
    pairs = {}
    for word in words(name, ""):
        key, equals, value = word.rpartition("=")
        if not (key and equals and value):
            raise EnvironmentValueError(name, word, "must be key=value, separated by commas")
        pairs[key.strip()] = value.strip()
    return pairs


def set_destinations(default: str, redis: str) -> None:
    """Add the site's Redis to the list of WEIR_DESTINATIONS, which child processes inherit."""
    value = text(SETTING, default)
    try:
        destinations.entries_of(value)
    except ValueError as error:
        wanted = "must be words such as kafka://broker:9092, redis://10.1.0.0/16:6379-6389 or yarn"
        raise EnvironmentValueError(SETTING, str(error), wanted) from None
    os.environ[LIST] = " ".join(dict.fromkeys([*value.split(), destinations.place_of(redis)]))


def data_dir() -> Path:
    """Return WEIR_DATA, where database, Redis, checkpoints, logs and secrets stand.

    Without it: `.weir` of the repository, `~/.local/share/weir` of an installed package.
    """
    user = text("XDG_DATA_HOME", "~/.local/share")
    default = ROOT / ".weir" if is_checkout() else Path(user) / "weir"
    return Path(text("WEIR_DATA", str(default))).expanduser().resolve()


def is_checkout() -> bool:
    """Return whether Weir runs from its repository, False for an installed package."""
    return (ROOT / "pyproject.toml").is_file()


def redis_url() -> str:
    """Return REDIS_URL: the log, the routing, the channel layer and Celery's broker.

    Without it, the Redis that the runner has started for this data directory.
    """
    own = redis_url_file(data_dir())
    default = own.read_text().strip() if own.exists() else "redis://127.0.0.1:6390/0"
    return url("REDIS_URL", default, ("redis", "rediss", "unix"))


def external_redis_url() -> str | None:
    """Return the Redis of REDIS_URL, None if Weir starts its own."""
    return redis_url() if secret("REDIS_URL") else None


def redis_url_file(directory: Path) -> Path:
    """Return the file with the URL and password of the Redis that the runner starts."""
    return directory / "secrets" / "redis_url"


def keep_files_private() -> None:
    """Let only this user read the files that this process and its children create."""
    os.umask(0o077)


def secret_key(directory: Path) -> str:
    """Return WEIR_SECRET_KEY, else the key kept in the data directory, made at first use."""
    return secret("WEIR_SECRET_KEY") or kept_secret(directory / "secrets" / "secret_key")


def kept_secret(path: Path) -> str:
    """Return the secret in the file; a missing file is written once with mode 600.

    O_EXCL decides which of two processes that start together writes it; the other one reads.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _written_secret(path)
    with os.fdopen(descriptor, "w") as file:
        secret = secrets.token_urlsafe(50)
        file.write(secret)
    return secret


def _written_secret(path: Path) -> str:
    secret = path.read_text().strip()
    if not secret:
        raise EnvironmentValueError(str(path), "", "is empty: remove the file and start again")
    return secret


def new_password() -> str:
    """Return a random password of 64 bits, which people can type."""
    return "-".join(secrets.token_hex(2) for _ in range(4))


def write_private(path: Path, content: str) -> None:
    """Write a file that only its owner can read, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
    draft.replace(path)
