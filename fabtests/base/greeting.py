# SPDX-License-Identifier: BSD-3-Clause
"""One message from the client to the server, as text with a zero byte at its end."""

import numpy as np

from fabtests.base.session import Session

__all__ = ["GREETING", "expect_text", "greet", "text"]

GREETING = "Hello from Client!"


def text(words: str) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    """Words as they travel."""
    return np.frombuffer(words.encode() + b"\0", np.uint8)


def expect_text(session: Session, data: object, words: str) -> None:
    """Fail when the bytes are not these words."""
    got = bytes(memoryview(data)).partition(b"\0")[0]  # type: ignore[arg-type]
    session.expect(got == words.encode(), f"{got!r} came where {words!r} was sent")
    session.passed("Data check OK")


def greet(session: Session) -> None:
    """The client sends its greeting, the server checks it."""
    if session.client:
        session.send(text(GREETING))
        session.passed("Send completion received")
    else:
        expect_text(session, session.take(), GREETING)
