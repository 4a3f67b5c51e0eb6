# SPDX-License-Identifier: BSD-3-Clause
"""One stream from the guest: what the command writes, with notices of the guest's first process among it."""

from __future__ import annotations


class Channel:
    """Tells both apart: a notice is a line that begins with a zero byte and a token that nobody else knows."""

    def __init__(self, token: str) -> None:
        self._mark = b"\0" + token.encode() + b" "
        self._kept = b""

    def feed(self, data: bytes) -> tuple[bytes, list[str]]:
        """Output and notices in what has come; what may be the beginning of a notice is kept for the next time."""
        output, notices = b"", []
        data = self._kept + data
        while (start := data.find(self._mark)) >= 0:
            end = data.find(b"\n", start)
            if end < 0:
                break
            output += data[:start]
            notices.append(data[start + len(self._mark) : end].decode())
            data = data[end + 1 :]
        if start < 0:
            start = data.rfind(b"\0", max(0, len(data) - len(self._mark) + 1))
            if start < 0 or not self._mark.startswith(data[start:]):
                start = len(data)
        self._kept = data[start:]
        return output + data[:start], notices
