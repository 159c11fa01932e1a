"""What every operation refuses: unknown query parameters, and unknown fields of a body.

`known_parameters_only` decorates all operations. `require_strict_bodies` and `accept_absent_bodies`
are called once, when the API is complete: a body that would ignore an unknown field is an error of
the program, and a request without a body is one with an empty object.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any, cast, get_args

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from ninja.operation import Operation
from pydantic import BaseModel

from controlplane.api.common.problems import problem
from controlplane.api.common.security import identified

View = Callable[..., HttpResponseBase]


def known_parameters_only(run: View) -> View:
    """Reject a request with a query parameter that the operation does not declare: 422."""
    operation = cast("Operation", inspect.unwrap(run).__self__)

    @cache
    def known() -> frozenset[str]:
        return frozenset(query_parameters(operation))

    @wraps(run)
    def checked(request: HttpRequest, *args: Any, **parts: Any) -> HttpResponseBase:
        unknown = sorted(request.GET.keys() - known())
        # Authentication rejects an anonymous caller.
        if not unknown or identified(request) is None:
            return run(request, *args, **parts)
        names = ", ".join(sorted(known())) or "none"
        text = f"Is not a parameter of this address, which has: {names}"
        return problem(
            request, 422, "Some query parameters are unknown", f"{unknown[0][:100]}: {text}",
            code="unknown_parameter", fields={name[:100]: [text] for name in unknown[:20]},
        )  # fmt: skip

    return checked


def query_parameters(operation: Operation) -> Iterator[str]:
    """Yield the names of the query parameters that an operation declares."""
    for model in operation.models:
        if model.__ninja_param_source__ == "query":
            yield from getattr(model, "__ninja_flatten_map__", None) or model.model_fields
    for parameter in (operation.openapi_extra or {}).get("parameters", ()):
        if parameter["in"] == "query":
            yield str(parameter["name"])


def operations_of(api: NinjaAPI) -> Iterator[tuple[str, Operation]]:
    """Yield the path and the value of every operation of an API."""
    for router in api._get_bound_routers():  # noqa: SLF001 - Ninja has no public name for it
        for path, view in router.path_operations.items():
            for operation in view.operations:
                yield f"{router.prefix}{path}", operation


def require_strict_bodies(api: NinjaAPI) -> None:
    """Raise `ImproperlyConfigured` if a body has a part that accepts unknown fields."""
    for path, operation in operations_of(api):
        for model in operation.models:
            if model.__ninja_param_source__ != "body":
                continue
            for part in _parts(model, set()):
                if part is not model and part.model_config.get("extra") != "forbid":
                    text = f"{part.__name__} of {path} accepts unknown fields: use RequestBody"
                    raise ImproperlyConfigured(text)


def accept_absent_bodies(api: NinjaAPI) -> None:
    """Let requests omit a body that has no required field."""
    for _, operation in operations_of(api):
        for model in operation.models:
            if model.__ninja_param_source__ == "body":
                for field in model.model_fields.values():
                    if field.is_required() and _is_optional(field.annotation):
                        field.default_factory, field.validate_default = dict, True
                model.model_rebuild(force=True)


def _is_optional(kind: Any) -> bool:
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    return is_model and not any(field.is_required() for field in kind.model_fields.values())


def _parts(kind: Any, seen: set[Any]) -> Iterator[type[BaseModel]]:
    """Yield a type if it is a model, and the models in its fields and arguments."""
    if kind in seen:
        return
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        seen.add(kind)
        yield kind
        for field in kind.model_fields.values():
            yield from _parts(field.annotation, seen)
    for argument in get_args(kind):
        if not isinstance(argument, list):
            yield from _parts(argument, seen)
