"""The two ways to call the API: in this process, and over HTTP to a Weir elsewhere.

A command is written once, against `Api`; both ways return the same JSON and the same errors, so
output and exit codes are the same.
"""

from argparse import Namespace

from controlplane.cli.backends.interface import Answer, Api

__all__ = ["Answer", "Api", "api_of", "is_remote"]


def is_remote(given: Namespace) -> bool:
    """Return True if the call names a Weir elsewhere: by --url, or by WEIR_URL."""
    return bool(getattr(given, "url", ""))


def api_of(given: Namespace) -> Api:
    """Return the API that the call names: that of --url, else that of this process."""
    if is_remote(given):
        from controlplane.cli.backends.remote import remote_api  # noqa: PLC0415

        return remote_api(given)
    # The local way needs Django, which a client of another Weir does not set up.
    from controlplane.cli.backends.local import local_api  # noqa: PLC0415

    return local_api(given)
