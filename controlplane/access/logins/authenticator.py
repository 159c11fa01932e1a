"""Codes of authenticator applications: TOTP (RFC 6238) with SHA-1, 6 digits and steps of 30 s.

The secret is derived from random bits of the user's row by Django's key, as the secrets of webhooks
are: a copy of the database alone computes no code.
"""

import base64
import hashlib
import hmac
import secrets
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django_otp.oath import TOTP

DIGITS: Final = 6
STEP_S: Final = 30
# Clocks of phones and servers differ: the codes of the steps before and after are accepted.
TOLERANCE: Final = 1
# The length of the key of HMAC-SHA-1 (RFC 4226, section 4: 160 bits are recommended).
_KEY_BYTES: Final = 20
_ISSUER: Final = "Weir"


def new_nonce() -> str:
    """Return 256 random bits from which a secret is derived."""
    return secrets.token_hex(32)


def secret_of(nonce: str) -> bytes:
    """Return the secret of 160 bits."""
    label = f"weir.second-factor.{nonce}".encode()
    return hmac.digest(settings.SECRET_KEY.encode(), label, hashlib.sha256)[:_KEY_BYTES]


def secret_text(nonce: str) -> str:
    """Return the secret in base32, as people enter it into an application."""
    return base64.b32encode(secret_of(nonce)).decode()


def address_of(nonce: str, username: str) -> str:
    """Return the otpauth:// address of the secret, which applications read from a QR code."""
    values = {
        "secret": secret_text(nonce), "issuer": _ISSUER, "algorithm": "SHA1",
        "digits": DIGITS, "period": STEP_S,
    }  # fmt: skip
    return f"otpauth://totp/{quote(f'{_ISSUER}:{username}')}?{urlencode(values)}"


def accepted_step(nonce: str, code: str, after: int, now: datetime) -> int | None:
    """Return the time step that the code is of, None for a wrong code.

    `after`: the newest step that was accepted; a code of it or of earlier steps is refused.
    """
    if not (len(code) == DIGITS and code.isascii() and code.isdecimal()):
        return None
    totp = TOTP(secret_of(nonce), STEP_S, digits=DIGITS)
    totp.time = now.timestamp()
    is_right = totp.verify(int(code), tolerance=TOLERANCE, min_t=after + 1)
    return int(totp.t()) if is_right else None
