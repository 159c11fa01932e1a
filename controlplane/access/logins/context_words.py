"""Refusal of passwords that consist of words of this site."""

import re
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from controlplane.models import Cluster

# The product, what it manages, and what people write around a word to make it a password.
WORDS: Final = frozenset({
    "weir", "spark", "cluster", "clusters", "stream", "streams", "query", "queries", "dashboard",
    "admin", "operator", "approver", "viewer", "password", "secret", "login", "user", "letmein",
    "welcome",
})  # fmt: skip
# Clusters whose names are read; a site has few.
_MAX_CLUSTERS: Final = 1000
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_CODE: Final = "password_of_context"


class ContextWordsValidator:
    """Refuses passwords without other letters than words of the product and names of the site."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Raise `ValidationError` if the letters of the password are words of the site alone."""
        letters = "".join(_LETTERS.findall(password.lower()))
        if letters and _consists_of(letters, _site_words()):
            text = "The password consists of words of this site: add others"
            raise ValidationError(text, code=_CODE)

    def get_help_text(self) -> str:
        """Return the rule for people."""
        return "The password does not consist of words of this site alone."


def _site_words() -> frozenset[str]:
    """Return the words of the product, of the site's host names and of the names of clusters."""
    names = [*settings.ALLOWED_HOSTS]
    for pair in Cluster.objects.values_list("slug", "name")[:_MAX_CLUSTERS]:
        names += pair
    words = (word for name in names for word in _LETTERS.findall(name.lower()))
    return WORDS | {word for word in words if len(word) > 2}  # noqa: PLR2004 - "of" hides nothing


def _consists_of(letters: str, words: frozenset[str]) -> bool:
    """Return True if the letters are words one after another."""
    reached = {0}
    for stop in range(1, len(letters) + 1):
        if any(start in reached and letters[start:stop] in words for start in range(stop)):
            reached.add(stop)
    return len(letters) in reached
