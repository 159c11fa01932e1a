"""Messages by e-mail, through the server of the site (WEIR_EMAIL_URL)."""

from collections.abc import Sequence
from smtplib import SMTPException
from typing import Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email

from controlplane.integrations.formats import mail
from controlplane.integrations.outbound import AddressRejected, AddressUnreachable

MAILTO: Final = "mailto:"
MAX_RECIPIENTS: Final = 10


def recipients(url: str) -> Sequence[str]:
    """Return the addresses of mailto:a@example.org,b@example.org. Raises `AddressRejected`."""
    if not settings.EMAIL_HOST:
        raise AddressRejected("This site sends no e-mail: set WEIR_EMAIL_URL, or its file")
    addresses = [word.strip() for word in url.removeprefix(MAILTO).split(",")]
    try:
        for address in addresses:
            validate_email(address)
    except ValidationError:
        addresses = []
    if not url.startswith(MAILTO) or not 1 <= len(addresses) <= MAX_RECIPIENTS:
        text = f"Must be mailto: and 1 to {MAX_RECIPIENTS} addresses, as mailto:ops@example.org"
        raise AddressRejected(text)
    return addresses


def send_mail(url: str, event: str, body: str) -> None:
    """Send a stored message. Raises `AddressRejected` and `AddressUnreachable`."""
    subject, text = mail(body)
    # The same at each attempt: mail programs recognize copies.
    headers = {"Message-ID": f"<{event}@weir>"}
    message = EmailMessage(subject, text, to=list(recipients(url)), headers=headers)
    try:
        message.send()
    except (SMTPException, OSError) as error:
        raise AddressUnreachable(str(error) or type(error).__name__) from error
