"""What docs/api.md tells receivers to do verifies what Weir sends."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.utils import timezone

from controlplane.integrations.webhooks import secret_of, signed
from controlplane.models import Webhook


def verifier() -> Callable[..., bool]:
    """Return the function of the page."""
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names["verified"]  # type: ignore[no-any-return]


def test_the_page_verifies_a_message_and_no_forged_one() -> None:
    hook, body, verified = Webhook(salt="0" * 32), '{"id":"x"}', verifier()
    headers = signed(hook, "x", body, timezone.now())
    secret = secret_of(hook)
    assert verified(secret, headers, body.encode())
    assert not verified(secret, headers, b'{"id":"y"}')
    assert not verified(secret_of(Webhook(salt="1" * 32)), headers, body.encode())
    assert not verified(secret, headers | {"webhook-id": "y"}, body.encode())
    assert not verified(secret, headers | {"webhook-timestamp": "1"}, body.encode())
