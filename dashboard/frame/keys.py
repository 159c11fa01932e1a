"""The keys of all pages: what the list of keys shows, and what static/js/keys.js obeys."""

from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from controlplane.installation.extras import lab_values


@dataclass(frozen=True)
class Key:
    """Keys with their effect in words.

    `action`: its name in static/js/keys.js; `page`: the URL name that `g` and a letter open;
    `is_of_cluster`: True if that page needs a cluster.
    """

    keys: tuple[str, ...]
    text: str
    action: str = ""
    page: str = ""
    is_of_cluster: bool = False

    @property
    def pressed(self) -> str:
        """Return the key as browsers name it: the last one of a chord."""
        return " " if self.keys[-1] == "Space" else self.keys[-1]

    @property
    def url(self) -> str:
        """Return the address of the page, with SLUG for the cluster; "" for an action."""
        return reverse(self.page, args=["SLUG"] if self.is_of_cluster else []) if self.page else ""


KEYS: Final = (
    Key(("?",), "list of keys", action="list-keys"),
    Key(("Ctrl", "K"), "search or run a command"),
    Key(("g", "f"), "fleet", page="fleet"),
    Key(("g", "c"), "cluster", page="cluster", is_of_cluster=True),
    Key(("g", "s"), "streams", page="streams", is_of_cluster=True),
    Key(("g", "q"), "queries", page="queries", is_of_cluster=True),
    Key(("g", "p"), "proposals", page="proposals", is_of_cluster=True),
    *(Key(keys, text, page=page) for keys, text, page in lab_values("dashboard.lab.frame:KEYS")),
    Key(("g", "a"), "audit log", page="audit"),
    Key(("/",), "search in the list", action="search-list"),
    Key(("j",), "next row; Enter opens it", action="next-row"),
    Key(("k",), "previous row", action="previous-row"),
    Key(("n",), "new query (operators)", action="new"),
    Key(("Space",), "pause and resume the live charts", action="pause"),
    Key(("t",), "light or dark theme", action="toggle-theme"),
    Key(("Esc",), "close what is open"),
)
