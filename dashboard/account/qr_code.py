"""QR codes as SVG, drawn on the server: no script and no other host sees a secret."""

import segno
from django.utils.safestring import SafeString, mark_safe

# Modules of the margin that readers need, and the side of a module in the units of the drawing.
_BORDER = 4
_SCALE = 4


def qr_code(text: str) -> SafeString:
    """Return the SVG element of a text; its size is that of the style sheet."""
    code = segno.make(text, error="m", micro=False)
    svg = code.svg_inline(
        scale=_SCALE, border=_BORDER, dark="#000", light="#fff", omitsize=True, svgclass="qr-code"
    )
    # segno draws modules: none of the text is in the markup.
    return mark_safe(svg)  # noqa: S308
