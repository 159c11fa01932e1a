"""Errors of use cases, with data in fields; the API and the pages translate them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

Fields = dict[str, list[str]]
# A database that is locked or away responds again within seconds.
DATABASE_AWAY_S: Final = 2


class WeirError(Exception):
    """Base class of errors that a person can act on; str() is a sentence."""

    def __reduce__(self) -> tuple[object, ...]:
        # A child process sends it; `__init__` takes other arguments than the message.
        return BaseException.__new__, (type(self), *self.args), self.__dict__


class Invalid(WeirError):
    """Input that cannot be accepted: messages per field, and per row of a bulk request."""

    code = "invalid"
    data: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, fields: Fields, rows: Mapping[int, Fields] | None = None) -> None:
        self.fields = fields
        self.rows = dict(rows or {})
        super().__init__("Some values are not valid")


class TooExpensive(Invalid):
    """A computation whose estimate exceeds a limit; `data`: estimate, limit, and what to reduce.

    `fields` has a message for each parameter to reduce.
    """

    code = "too_expensive"

    def __init__(self, fields: Fields, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.args = (message,)
        self.data = dict(data)


class BadBody(WeirError):
    """A body that does not have its declared format; `code` and `data` as of `Conflict`."""

    def __init__(self, message: str, code: str = "", data: Mapping[str, Any] | None = None) -> None:
        self.code = code
        self.data = dict(data or {})
        super().__init__(message)


class Unusable(Invalid):
    """A choice that the cluster cannot use now; `code` is stable and names what is missing."""

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__({field: [message]})
        self.code = code
        self.data = {"missing": code}


class Undecodable(Invalid):
    """A body whose decoding failed or exceeded a limit; `code` is stable, `data` has the limit."""

    def __init__(self, code: str, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__({"records": [message]})
        self.code = code
        self.data = dict(data or {})


class Forbidden(WeirError):
    """The actor lacks the role that this needs."""

    def __init__(self, role: str) -> None:
        self.role = role
        super().__init__(f"This needs the role {role}")


class LoginNeeded(Forbidden):
    """The request requires a session, not a token."""

    def __init__(self) -> None:
        super().__init__("login")
        self.args = ("This takes a login: a token may not do it",)


class ConfirmationNeeded(WeirError):
    """The request requires a session in which the user has confirmed to be present."""

    def __init__(self) -> None:
        super().__init__("Confirm first that it is you: do this on its page, which asks for it")


class NotFound(WeirError):
    """No such row, or none that this cluster has."""

    def __init__(self, kind: str, name: object) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"There is no {kind} {name}")


class Conflict(WeirError):
    """The state does not allow this now; code is stable, data has the cause."""

    def __init__(self, code: str, message: str, data: Mapping[str, Any] | None = None) -> None:
        self.code = code
        self.data = dict(data or {})
        super().__init__(message)


class TryLater(WeirError):
    """Temporarily not possible: code is stable, data has the cause."""

    def __init__(
        self, code: str, message: str, after_s: int, data: Mapping[str, Any] | None = None
    ) -> None:
        self.code = code
        self.after_s = after_s
        self.data = dict(data or {})
        super().__init__(message)


class Busy(TryLater):
    """The queue is full."""


class Away(TryLater):
    """A required service does not respond."""


class InProgress(TryLater):
    """The same request still runs."""


class VersionMoved(WeirError):
    """Another writer took the routing version this one was computed for: read again and retry."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        super().__init__(f"Routing moved past version {expected}")
