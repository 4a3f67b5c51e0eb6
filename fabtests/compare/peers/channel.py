# SPDX-License-Identifier: BSD-3-Clause
"""What the peers with a blocking send and a blocking receive have in common."""

from abc import abstractmethod
from collections.abc import Callable

from fabtests.compare.contender import Bytes, Contender, new_buffer

__all__ = ["Channel", "Step"]

Step = Callable[[], object]


class Channel(Contender):
    """Ping-pong and stream by calls that were given their arguments beforehand."""

    @abstractmethod
    def sender(self, buffer: Bytes) -> Step:
        """What sends this buffer."""

    @abstractmethod
    def receiver(self, buffer: Bytes) -> Step:
        """What receives into this buffer."""

    def prepare(self, size: int, mode: str) -> None:
        """Make the calls, too."""
        super().prepare(size, mode)
        byte = new_buffer(1)
        self.send, self.receive = self.sender(self.outgoing), self.receiver(self.incoming)
        self.acknowledge, self.await_acknowledgement = self.sender(byte), self.receiver(byte)

    def exchange(self, count: int) -> None:
        """Ping-pong."""
        send, receive = self.send, self.receive
        if self.first:
            for _ in range(count):
                send()
                receive()
        else:
            for _ in range(count):
                receive()
                send()

    def stream(self, window: int) -> None:
        """One window, a message after the other."""
        if self.first:
            for _ in range(window):
                self.send()
            self.await_acknowledgement()
        else:
            for _ in range(window):
                self.receive()
            self.look()
            self.acknowledge()
