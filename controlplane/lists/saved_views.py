"""Saved views of lists: filter text and order under a name, of one user."""

from collections.abc import Sequence
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, require_member
from controlplane.errors import Conflict, Forbidden, Invalid
from controlplane.lists.kinds import KINDS, ListKind
from controlplane.models import SavedView
from controlplane.pagination.filter_text import MAX_LENGTH, require_readable
from controlplane.pagination.lookup import row_by

# Views of a user per list.
MAX_VIEWS: Final = 50
MAX_NAME: Final = 60


def saved_views(actor: Actor, name: str = "") -> Sequence[SavedView]:
    """Return the actor's views by list and name; `name`: of a list, "" for all lists."""
    rows = _views(actor)
    return list(rows.filter(list=name) if name else rows)


def default_view(actor: Actor, name: str) -> SavedView | None:
    """Return the view that a list opens with, None for the list's own default."""
    return _views(actor).filter(list=name, is_default=True).first()


def saved_view(actor: Actor, pk: int) -> SavedView:
    """Return a view of the actor. Raises `NotFound`."""
    return row_by(_views(actor), "view", pk=pk)


def save_view(
    actor: Actor, list_name: str, name: str, filter_text: str, order: str, *, is_default: bool
) -> SavedView:
    """Save a view. Raises `Invalid`, `Forbidden`, `Conflict` (too_many, taken)."""
    require_member(actor)
    if not isinstance(actor.user, User):
        raise Forbidden("login")
    if list_name not in KINDS:
        raise Invalid({"list": [f"Must be one of {', '.join(KINDS)}"]})
    kind = KINDS[list_name]
    values = _checked(kind, name, filter_text, order)
    if _views(actor).filter(list=list_name).count() >= MAX_VIEWS:
        text = f"A list has at most {MAX_VIEWS} saved views: delete one first"
        raise Conflict("too_many", text, {"limit": MAX_VIEWS})
    view = SavedView(user=actor.user, list=list_name, created_at=timezone.now(), **values)
    return _stored(actor, view, is_default=is_default)


def change_view(
    actor: Actor,
    pk: int,
    *,
    name: str | None = None,
    filter_text: str | None = None,
    order: str | None = None,
    is_default: bool | None = None,
) -> SavedView:
    """Change a view; None leaves a value. Raises `NotFound`, `Invalid`, `Conflict` (taken)."""
    view = saved_view(actor, pk)
    values = _checked(
        KINDS[view.list],
        view.name if name is None else name,
        view.filter if filter_text is None else filter_text,
        view.order if order is None else order,
    )
    for column, value in values.items():
        setattr(view, column, value)
    return _stored(actor, view, is_default=view.is_default if is_default is None else is_default)


def delete_view(actor: Actor, pk: int) -> None:
    """Delete a view. Raises `NotFound`."""
    view = saved_view(actor, pk)
    with transaction.atomic():
        audit.record(actor, "view.delete", f"{view.list} {view.name}")
        view.delete()


def _views(actor: Actor) -> QuerySet[SavedView]:
    # A view of a kind that is no longer offered stays stored, but is not listed.
    user = actor.user.pk if isinstance(actor.user, User) else None
    return SavedView.objects.filter(user=user, list__in=KINDS)


def _checked(kind: ListKind, name: str, filter_text: str, order: str) -> dict[str, Any]:
    """Return the columns of a view. Raises `Invalid`."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise Invalid({"name": [f"Must have 1 to {MAX_NAME} characters"]})
    if len(filter_text) > MAX_LENGTH:
        raise Invalid({"filter": [f"Must have at most {MAX_LENGTH} characters"]})
    require_readable(filter_text, kind.fields)
    # Raises `Invalid` for an order that the list does not have.
    kind.filters.of({"order": order} if order else {})
    if order and "order" not in kind.filters.parameters():
        raise Invalid({"order": ["This list has one order only"]})
    return {"name": name, "filter": filter_text.strip(), "order": order}


def _stored(actor: Actor, view: SavedView, *, is_default: bool) -> SavedView:
    """Save a row; at most one view of a list is the default. Raises `Conflict` (taken)."""
    view.is_default = is_default
    try:
        with transaction.atomic():
            if is_default:
                others = SavedView.objects.filter(user=view.user_id, list=view.list)
                others.exclude(pk=view.pk).filter(is_default=True).update(is_default=False)
            view.save()
            audit.record(actor, "view.save", f"{view.list} {view.name}")
    except IntegrityError:
        text = f"There is a view called {view.name} already"
        raise Conflict("taken", text, {"name": view.name}) from None
    return view
