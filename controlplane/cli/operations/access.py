"""Commands about access and the site: caller, tokens, webhooks, audit log, health."""

from typing import Final

from controlplane.cli.operations.declaration import PAGED, REASON, Operation, Option

_HOOK: Final = (
    Option("kind", "a kind of event; may repeat (all)", "kinds", many=True, metavar="KIND"),
    Option("cluster", "events of this cluster only", metavar="CLUSTER"),
    Option("inactive", "send nothing", "active", flag=False),
)
_TO: Final = Option("to", "the URL that gets the events", "url", metavar="URL", required=True)
_HOOK_COLUMNS: Final = {
    "id": ("id", "number"), "name": ("name", "name"), "url": ("url", "name"),
    "active": ("active", "text"), "failures": ("failures", "number"),
}  # fmt: skip


def _grants(verb: str, about: str, role: tuple[Option, ...] = ()) -> list[Operation]:
    """Return the commands on grants of a cluster and of all: set, or without a role remove."""
    method = "PUT" if role else "DELETE"
    query, body = ((), (*role, *REASON)) if role else (REASON, ())
    done = "{user} has the role {answer[role]}" if role else "{user} has no role"
    places = (("", "/clusters/{cluster}", "on a cluster", "on {cluster}"),
              ("-everywhere", "", "on all clusters", "on all clusters"))  # fmt: skip
    return [
        Operation(f"grants {verb}{end}", method, f"{path}/grants/{{user}}", f"{about} {where}",
                  query=query, body=body, sentence=f"{done} {named}")
        for end, path, where, named in places
    ]  # fmt: skip


OPERATIONS: Final = (
    Operation("whoami", "GET", "/me", "the acting user, and their roles"),
    Operation(
        "health", "GET", "/health", "the processes of Weir: which is silent, and what it holds up",
        rows="processes", columns={
            "process": ("process", "name"), "state": ("state", "text"),
            "silent s": ("silent_s", "number"), "effect": ("effect", "text"),
        },
    ),
    Operation(
        "tokens list", "GET", "/tokens", "your tokens, without their secrets",
        query=(Option("user", "those of this user, for admins", metavar="USER"),),
        rows="", columns={
            "id": ("id", "number"), "name": ("name", "name"), "role": ("role", "text"),
            "cluster": ("cluster", "text"), "expires (UTC)": ("expires_at", "day"),
            "last used": ("last_used_at", "moment"),
        }, empty="no token",
    ),
    Operation(
        "tokens create", "POST", "/tokens", "create a token; only this command prints its secret",
        body=(
            Option("name", "what it is for", required=True),
            Option("role", "the most it may (viewer); producer: append records", metavar="ROLE"),
            Option("cluster", "the only cluster where it is valid", metavar="CLUSTER"),
            Option("days", "until it expires (90)", type=int, metavar="N"),
        ), sentence="{secret}",
    ),
    Operation("tokens revoke", "DELETE", "/tokens/{id}", "revoke a token",
              sentence="token {id} is revoked"),
    Operation("webhooks list", "GET", "/webhooks", "the webhooks", rows="", columns=_HOOK_COLUMNS,
              empty="no webhook"),
    Operation("webhooks show", "GET", "/webhooks/{id}", "one webhook"),
    Operation(
        "webhooks create", "POST", "/webhooks", "create a webhook; prints its secret once",
        body=(Option("name", required=True), _TO, *_HOOK),
        sentence="webhook {webhook[id]}, secret {secret}",
    ),
    Operation(
        "webhooks change", "PUT", "/webhooks/{id}", "replace the settings of a webhook",
        body=(Option("name", required=True), _TO, *_HOOK),
    ),
    Operation("webhooks delete", "DELETE", "/webhooks/{id}", "delete a webhook",
              sentence="webhook {id} is deleted"),
    Operation("webhooks renew-secret", "POST", "/webhooks/{id}/secret",
              "replace the secret of a webhook", sentence="{secret}"),
    Operation("webhooks test", "POST", "/webhooks/{id}/test", "send a test event",
              sentence="delivery {answer[id]} waits"),
    Operation(
        "webhooks deliveries", "GET", "/webhooks/{id}/deliveries", "the deliveries, newest first",
        query=(Option("state", "waiting, delivered, ..."), Option("cursor"),
               Option("limit", type=int, metavar="N")),
        rows="deliveries", columns={
            "id": ("id", "number"), "kind": ("kind", "name"), "state": ("state", "text"),
            "tries": ("tries", "number"), "status": ("status", "number"),
            "error": ("error", "text"),
        }, empty="no delivery",
    ),
    Operation("webhooks send-again", "POST", "/webhooks/{id}/deliveries/{delivery}/again",
              "send a delivery again", sentence="delivery {answer[id]} waits"),
    Operation(
        "audit list", "GET", "/audit", "the audit log, newest first",
        query=(
            Option("search", "in actor, object and reason", "q"),
            Option("cluster", metavar="CLUSTER"), Option("action", "as cluster.start"),
            Option("request", "the id of a request", metavar="ID"),
            Option("filter", 'as "by:user action:query. at>2d"'), *PAGED,
        ),
        rows="entries", columns={
            "at (UTC)": ("at", "moment"), "actor": ("actor", "name"), "action": ("action", "name"),
            "object": ("object", "name"), "reason": ("reason", "text"),
        }, empty="no entry",
    ),
    Operation(
        "audit verify", "POST", "/audit/verify",
        "verify that no entry of the audit log was changed or deleted; exit code 1 if so",
        body=(Option("sequence", "of an earlier verification's newest entry", type=int,
                     metavar="N"),
              Option("hash", "of that entry", metavar="HASH")),
        has_failed=lambda answer: not answer["intact"] and not answer["pending"],
    ),
    Operation("storage", "GET", "/storage", "sizes, and what retention keeps"),
    Operation("audit verification", "GET", "/audit/verification",
              "the result of the last verification of the audit log"),
    Operation(
        "grants list", "GET", "/grants", "roles of users, on one cluster or on all",
        query=(Option("user", metavar="USER"), Option("cluster", metavar="CLUSTER"),
               Option("role", metavar="ROLE"), Option("cursor"),
               Option("limit", type=int, metavar="N")),
        rows="grants", columns={
            "user": ("user", "name"), "cluster": ("cluster", "text"), "role": ("role", "text"),
            "granted by": ("granted_by", "name"), "at (UTC)": ("granted_at", "moment"),
        }, empty="no grant",
    ),
    *_grants("set", "grant a role", (Option("role", required=True, metavar="ROLE"),)),
    *_grants("remove", "remove the role of a user"),
    Operation("users end-sessions", "POST", "/users/{user}/end-sessions",
              "end all sessions of a user; tokens stay valid", body=REASON,
              sentence="{ended} sessions of {user} have ended"),
    Operation("users remove-second-factor", "DELETE", "/users/{user}/second-factor",
              "remove the second factor of a user who lost it", query=REASON,
              sentence="{user} has no second factor"),
)  # fmt: skip
