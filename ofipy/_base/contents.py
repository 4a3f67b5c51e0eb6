# SPDX-License-Identifier: BSD-3-Clause
"""Memory that holds Python objects: pointers into this process, which are no contents to send."""

import re
from typing import Any

from ofipy._base.arrays import is_array
from ofipy._base.errors import BufferTypeError

__all__ = ["holds_objects", "plain_bytes", "refuse_objects"]


def holds_objects(buffer: Any) -> bool:
    """Whether its elements, or fields of them, are Python objects; False for what is not memory."""
    if isinstance(buffer, bytes | bytearray):
        return False
    if is_array(buffer):
        return bool(buffer.dtype.hasobject)
    try:
        with memoryview(buffer) as view:
            # A format of the struct module's kind, as of PEP 3118; names of fields in it may have an O too.
            return "O" in view.format and "O" in re.sub(":[^:]*:", "", view.format)
    except (TypeError, ValueError, BufferError):
        return False


def refuse_objects(buffer: Any, operation: str | None = None) -> None:
    """Raise when memory holds Python objects.

    Raises
    ------
    BufferTypeError
        When it does.
    """
    if holds_objects(buffer):
        kind = f"{type(buffer).__name__} of dtype {buffer.dtype}" if hasattr(buffer, "dtype") else None
        raise BufferTypeError(
            f"the {kind or type(buffer).__name__} holds Python objects, whose addresses mean nothing elsewhere",
            operation=operation,
            remedy="send numbers or bytes: another dtype, or pickle.dumps(array)",
        )


def plain_bytes(data: Any, operation: str) -> bytes:
    """A copy of bytes that go with something, such as the private data of a connection request.

    Raises
    ------
    BufferTypeError
        When they are not memory, or hold Python objects.
    """
    refuse_objects(data, operation)
    try:
        with memoryview(data) as view:
            return view.tobytes()
    except TypeError:
        raise BufferTypeError(
            f"data of type {type(data).__name__}; bytes are meant", operation=operation
        ) from None
