# SPDX-License-Identifier: BSD-3-Clause
"""Stock peers that end a connection as soon as it is made, as libfabric's ``fi_cm_data`` does: bare sockets here."""

from __future__ import annotations

import socket
import sys
import threading
import time

import pytest

import ofipy

TIMEOUT = 20
ROUNDS = 50
NODE = "127.0.0.1"
CONNREQ, CONNRESP = 0, 1


def control(kind: int, said: bytes) -> bytes:
    """A control message: header, then private data."""
    head = bytes([3, kind]) + len(said).to_bytes(2, "big") + bytes(20) + (1).to_bytes(8, sys.byteorder)
    return head + said


def message(payload: bytes) -> bytes:
    """An untagged message: version, operation, count, flags, operation data, id, header size, size."""
    return bytes([3, 0, 0, 0, 0, 0, 16, 0]) + (16 + len(payload)).to_bytes(8, sys.byteorder) + payload


@pytest.mark.parametrize("behind", [b"", message(b"last")], ids=["nothing", "a message"])
def test_who_accepts_and_shuts_down_has_accepted(behind: bytes) -> None:
    def serve(listener: socket.socket) -> None:
        for _ in range(ROUNDS):
            with listener.accept()[0] as peer:
                peer.recv(4096)
                peer.sendall(control(CONNRESP, b"welcome") + behind)
                peer.shutdown(socket.SHUT_RDWR)

    with socket.create_server((NODE, 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        for _ in range(ROUNDS):
            with ofipy.open(provider="tcp", ep_type="msg", node=NODE) as ep:
                room = bytearray(8)
                receive = ep.recv_into(room) if behind else None
                assert ep.connect(f"{NODE}:{listener.getsockname()[1]}").wait(timeout=TIMEOUT) == b"welcome"
                if receive is not None:
                    assert receive.wait(timeout=TIMEOUT).length == 4
                    assert room[:4] == b"last"
                with pytest.raises(ofipy.PeerLost):
                    ep.recv_into(room).wait(timeout=TIMEOUT)
                ep.shutdown().wait(timeout=TIMEOUT)
        thread.join()


@pytest.mark.parametrize("slowly", [False, True], ids=["at once", "after it ended"])
def test_what_was_answered_is_told_after_the_end(slowly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is made and over before its request exists."""
    from ofipy._operations import connection

    class Late:
        def __getattr__(self, name: str) -> object:
            if slowly and name == "ofp_connection_request":
                time.sleep(0.2)
            return getattr(lib, name)

    lib = connection.lib
    monkeypatch.setattr(connection, "lib", Late())

    def serve() -> None:
        with listener.accept()[0] as peer:
            peer.recv(4096)
            peer.sendall(control(CONNRESP, b"welcome"))

    with (
        socket.create_server((NODE, 0)) as listener,
        ofipy.open(provider="tcp", ep_type="msg", node=NODE) as ep,
    ):
        thread = threading.Thread(target=serve)
        thread.start()
        assert ep.connect(f"{NODE}:{listener.getsockname()[1]}").wait(timeout=TIMEOUT) == b"welcome"
        thread.join()


def test_who_connects_and_shuts_down_is_accepted() -> None:
    with ofipy.listen(provider="tcp", node=NODE) as listener:
        port = int(str(listener.address).rpartition(":")[2])
        for _ in range(ROUNDS):
            with socket.create_connection((NODE, port)) as peer:
                peer.sendall(control(CONNREQ, b"hello"))
                request = listener.wait(timeout=TIMEOUT)
                assert request.data == b"hello"
                with listener.domain.endpoint(request=request).enable() as ep:
                    room = bytearray(8)
                    receive = ep.recv_into(room)
                    accepted = ep.accept(data=b"welcome")
                    assert peer.recv(4096) == control(CONNRESP, b"welcome")
                    peer.sendall(message(b"last"))
                    peer.close()
                    assert receive.wait(timeout=TIMEOUT).length == 4
                    accepted.wait(timeout=TIMEOUT)
                    with pytest.raises(ofipy.PeerLost):
                        ep.recv_into(room).wait(timeout=TIMEOUT)
                    ep.shutdown().wait(timeout=TIMEOUT)
