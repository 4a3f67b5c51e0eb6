# SPDX-License-Identifier: BSD-3-Clause
"""A peer whose release speaks no version of this one, as sockets that say what such a release would say."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import ofipy

LATER = 200
"""No release speaks this version for a long time."""

HELLO, REFUSED = 1, 4  # packets of shm
CONNREQ, NACK = 0, 6  # control messages of tcp


def shm_packet(kind: int, address: bytes, newest: int, oldest: int, status: int = 0) -> bytes:
    """A packet of shm, of a release whose packets are longer than this one's; `address` is the sender's."""
    return struct.pack("<IHHHHI", 0x31544D53, newest, oldest, kind, 0, status) + address + bytes(60)


def tcp_control(
    kind: int, newest: int, oldest: int, port: int = 0, *, private: bytes = b"", bits: int = 0
) -> bytes:
    """A control message of tcp, with the private data of a request if there is a port."""
    if port:
        private = struct.pack(">BBHI", 1, 0, port, os.getpid())
    head = struct.pack(">BBH4x", 3, kind, len(private)) + bytes([newest]) + b"OFIPYTX"
    return head + struct.pack("<Q", (newest - oldest) << 56 | bits) + struct.pack("=Q", 1) + private


@contextmanager
def answering(listener: socket.socket, answer: bytes) -> Iterator[None]:
    """Something that listens and answers whatever comes, until the block ends."""

    def serve() -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(answer)
                connection.recv(4096)  # until the other side closes

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def shm_address(name: str) -> bytes:
    """The address of an endpoint of that name, as packets have it."""
    with ofipy.open(name, provider="shm") as ep:
        return ep.address.raw("shm")
