"""What a service can refuse, as types with data in them; the API and the pages translate them."""

from collections.abc import Mapping
from typing import Any

Fields = dict[str, list[str]]


class WeirError(Exception):
    """A refusal that a person can act on; str() is a sentence for them."""


class Invalid(WeirError):
    """Input that cannot be accepted: messages per field, and per row of a bulk request."""

    def __init__(self, fields: Fields, rows: Mapping[int, Fields] | None = None) -> None:
        self.fields = fields
        self.rows = dict(rows or {})
        super().__init__("Some values are not valid")


class BadBody(WeirError):
    """A body that is not of the format that it is said to have."""


class Forbidden(WeirError):
    """The actor lacks the role that this needs."""

    def __init__(self, role: str) -> None:
        self.role = role
        super().__init__(f"This needs the role {role}")


class LoginNeeded(Forbidden):
    """A token is not enough: this takes somebody who has logged in."""

    def __init__(self) -> None:
        super().__init__("login")
        self.args = ("This takes a login: a token does not make or revoke others",)


class NotFound(WeirError):
    """No such row, or none that this cluster has."""

    def __init__(self, kind: str, name: object) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"There is no {kind} {name}")


class Conflict(WeirError):
    """The state does not allow this now; code is stable, data says what stood in the way."""

    def __init__(self, code: str, message: str, data: Mapping[str, Any] | None = None) -> None:
        self.code = code
        self.data = dict(data or {})
        super().__init__(message)


class TryLater(WeirError):
    """Not now, but after some seconds: code is stable, data says what stands in the way."""

    def __init__(
        self, code: str, message: str, after_s: int, data: Mapping[str, Any] | None = None
    ) -> None:
        self.code = code
        self.after_s = after_s
        self.data = dict(data or {})
        super().__init__(message)


class Busy(TryLater):
    """There is more to do already than should wait."""


class Away(TryLater):
    """Something that this needs does not answer."""


class VersionMoved(WeirError):
    """Another writer took the routing version this one was computed for: read again and retry."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        super().__init__(f"Routing moved past version {expected}")
