# SPDX-License-Identifier: BSD-3-Clause
"""Bare cross-memory attach: the second process reads the first one's buffer with ``process_vm_readv``.

Where writes are compared the first process writes into the second one's buffer with ``process_vm_writev``.

What one copy by the kernel can reach, and nothing else: no messages, no matching. Two words in shared memory,
on which both sides spin, say that the buffer may be read and that it has been. One system call reads a whole
window. The words are ordinary memory: x86 keeps their order, and elsewhere the system call between them does.
"""

import ctypes
import mmap
import os
import platform
from collections.abc import Sequence
from typing import Any

from fabtests.compare.contender import DISTINCT, Bytes, Contender, count_distinct, new_buffer, read_all

__all__ = ["Attach"]


ADDRESSES = (
    64  # the word where those of the buffers to read from begin, at most as many as a window has messages
)


class IoVec(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


Offer = tuple[int, int]
Vectors = tuple[int, ctypes.Array[IoVec], ctypes.Array[IoVec]]


def address_of(buffer: Bytes) -> int:
    """Where an array begins."""
    address: int = buffer.__array_interface__["data"][0]
    return address


class Attach(Contender):
    """``process_vm_readv(2)`` and ``…_writev`` by ctypes, with arguments built beforehand."""

    def __init__(self, first: bool) -> None:
        super().__init__(first)
        library = ctypes.CDLL(None, use_errno=True)
        self._readv, self._writev = library.process_vm_readv, library.process_vm_writev
        vector = ctypes.POINTER(IoVec)
        for call in (self._readv, self._writev):
            call.restype = ctypes.c_ssize_t
            call.argtypes = (ctypes.c_int, vector, ctypes.c_ulong, vector, ctypes.c_ulong, ctypes.c_ulong)
        self._descriptor = os.memfd_create("fabtests-attach") if first else -1
        if first:
            os.ftruncate(self._descriptor, mmap.PAGESIZE)
            self._map(self._descriptor)
        self._pid = 0
        self._said = self._heard = 0

    def _map(self, descriptor: int) -> None:
        # Words, each on a cache line of its own: 0 what the first side has said, 8 the second; 24 the address of the
        # buffer to write to. Behind them the addresses of those to read from.
        self._words = memoryview(mmap.mmap(descriptor, mmap.PAGESIZE)).cast("Q")

    def version(self) -> str:
        """The kernel does the work."""
        return platform.release()

    def offer(self) -> Offer:
        """Process and descriptor of the shared words."""
        return os.getpid(), self._descriptor

    def meet(self, other: Offer) -> None:
        """The second side maps the first one's words."""
        pid, descriptor = other
        self._pid = pid
        if not self.first:
            with open(f"/proc/{pid}/fd/{descriptor}", "r+b", buffering=0) as words:
                self._map(words.fileno())

    def prepare(self, size: int, mode: str) -> None:
        """Take the addresses, too."""
        super().prepare(size, mode)
        self._size = size
        self._buffers = [self.outgoing if self.first else self.incoming]
        # Arrays of their own, as everybody has them: of one large one numpy asks for huge pages, which are read faster.
        if mode == DISTINCT:
            self._buffers = [new_buffer(size) for _ in range(count_distinct(size))]
        self._addresses = [address_of(each) for each in self._buffers]
        self._vectors: Vectors | None = None
        self._mode = mode
        if mode.startswith("target-"):
            self._meet_target()

    def _meet_target(self) -> None:
        """The first side learns where the second one's buffer is."""
        if self.first:
            self._hear()
        else:
            self._words[24] = self._addresses[0]
            self._say()

    def stream(self, window: int) -> None:
        """One window."""
        if self._mode.startswith("target-"):
            if self.first:
                self._move(self._writev, window, [self._words[24]])
        elif self.first:
            for place, address in enumerate(self._addresses, ADDRESSES):
                self._words[place] = address
            self._say()
            self._hear()
        else:
            self._hear()
            self._move(self._readv, window, self._words[ADDRESSES:][: len(self._addresses)])
            self.look()
            self._say()

    def settle(self) -> None:
        """Let the target read where it shall."""
        if self._mode != "target-reads":
            return
        if self.first:
            self._say()
            self._hear()
        else:
            self._hear()
            read_all(self.incoming)
            self._say()

    def _say(self) -> None:
        """Tell the other side that this one has got so far."""
        self._said += 1
        self._words[0 if self.first else 8] = self._said

    def _hear(self) -> None:
        """Spin until the other side has said as much as it has been heard."""
        words, place = self._words, 8 if self.first else 0
        self._heard += 1
        while words[place] != self._heard:
            pass

    def _move(self, call: Any, window: int, addresses: Sequence[int]) -> None:
        count, local, remote = self._vectors or self._build(window, addresses)
        moved = call(self._pid, local, count, remote, count, 0)
        if moved != window * self._size:
            error = ctypes.get_errno()
            raise OSError(
                error,
                f"cross-memory attach moved {moved} of {window * self._size} bytes: {os.strerror(error)}",
            )

    def _build(self, window: int, addresses: Sequence[int]) -> Vectors:
        here, there = (
            (IoVec * window)(*[IoVec(each[i % len(each)], self._size) for i in range(window)])
            for each in (self._addresses, addresses)
        )
        self._vectors = (window, here, there)
        return self._vectors

    def close(self) -> None:
        """Close the descriptor; the mapping goes with the process."""
        if self.first:
            os.close(self._descriptor)
