"""Packing of each Redis command into one write.

The client writes every argument of more than 6,000 bytes separately. An append of twenty blocks is
then 41 writes, and the server wakes for each.
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
