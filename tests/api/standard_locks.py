# SPDX-License-Identifier: BSD-3-Clause
"""Where an interrupt breaks the standard library, whatever ofipy does."""

import logging
from pathlib import Path
from types import FrameType

_LOGGING = str(Path(logging.__file__).parent)


def holds_lock_of_logging(frame: FrameType | None) -> bool:
    """Whether the interrupted code may have one, which an exception leaves taken: others then wait for ever."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_LOGGING):
            return True
        frame = frame.f_back
    return False
