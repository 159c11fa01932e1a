"""Shows the streaming queries of any PySpark job in Weir, read only (docs/attach.md).

    from workers.attach import attach

    attach(spark, "https://weir.example", token)

Needs PySpark and the standard library, nothing else of Weir; written for Python 3.9 and newer.
"""

from .attachment import Attachment, attach

__all__ = ["Attachment", "attach"]
