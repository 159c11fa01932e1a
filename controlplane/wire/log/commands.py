"""Commands to Redis in one write each.

The client writes every argument of more than 6,000 bytes on its own, and what is between them, too.
An append of twenty blocks is then 41 writes, and as many times the server is woken for a piece of a
command.
"""


class SingleWritePacker:
    """Packs a command into one piece of bytes: a connection's `command_packer`."""

    def pack(self, *arguments: bytes | str | int | float) -> list[bytes]:
        """Return a command in Redis's protocol; its name may be of several words."""
        name, *values = arguments
        words = name if isinstance(name, bytes) else str(name).encode()
        encoded = [
            *words.split(),
            *(value if isinstance(value, bytes) else str(value).encode() for value in values),
        ]
        pieces = [b"*%d\r\n" % len(encoded)]
        for item in encoded:
            pieces += (b"$%d\r\n" % len(item), item, b"\r\n")
        return [b"".join(pieces)]
