# SPDX-License-Identifier: BSD-3-Clause
"""The other side of ``fi_pingpong``: its control connection, and its messages over one of our endpoints.

Over a TCP connection of their own the two programs exchange addresses (length in 4 bytes, big-endian; number of the
address format, 4 bytes in the host's order; the address; the server's first), and before each size "q" and "a", after
it the number of messages received and "cnt ok". The messages are untagged; the last one each way is "fin". With
``-e msg`` the only address is that of the server's listener. Datagrams (``-e dgram``) are those of libfabric's ``udp``,
which we reach through the bridge.

As a program: ``python tests/interop/pingpong.py [-e rdm|msg|dgram] [HOST]``, without HOST the server of one client.
"""

import argparse
import socket
import sys
import time

import ofipy

TIMEOUT = 20
PORT = 47592  # of fi_pingpong's control connection
IB_UD = 11  # FI_ADDR_IB_UD, the addresses of verbs datagrams
SIZES = [64, 256, 1024, 4096, 65536, 1048576]  # without -S
DATAGRAM_SIZES = SIZES[:3]  # as far as a packet reaches


def _receive(control: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = control.recv(size - len(data))
        if not part:
            raise ConnectionError("fi_pingpong ended")
        data += part
    return data


def _format_number(info: ofipy.Info) -> int:
    """As libfabric numbers what kind of address it is: those of IP as we do."""
    return IB_UD if info.protocol == "verbs-ud" else info.address_format.value


def _send_name(control: socket.socket, endpoint: ofipy.Endpoint | ofipy.PassiveEndpoint) -> None:
    name = endpoint.address.entries[0][1]
    control.sendall(len(name).to_bytes(4, "big"))
    control.sendall(_format_number(endpoint.domain.info).to_bytes(4, sys.byteorder))
    control.sendall(name)


def _receive_name(control: socket.socket) -> bytes:
    size = int.from_bytes(_receive(control, 4), "big")
    _receive(control, 4)
    return _receive(control, size)


def _sync(control: socket.socket, *, server: bool) -> None:
    if server:
        assert _receive(control, 2) == b"q\0"
        control.sendall(b"a\0")
    else:
        control.sendall(b"q\0")
        assert _receive(control, 2) == b"a\0"


def meet(control: socket.socket, endpoint: ofipy.Endpoint, *, server: bool) -> ofipy.Peer:
    """Exchange addresses."""
    if server:
        _send_name(control, endpoint)
        return endpoint.insert(_receive_name(control))
    peer = endpoint.insert(_receive_name(control))
    _send_name(control, endpoint)
    return peer


def accept(control: socket.socket, listener: ofipy.PassiveEndpoint) -> ofipy.Endpoint:
    """The server's end of a connection."""
    _send_name(control, listener)
    return listener.wait(timeout=TIMEOUT).accept()


def connect(control: socket.socket, endpoint: ofipy.Endpoint) -> None:
    """Connect the client's endpoint."""
    endpoint.connect(_receive_name(control)).wait(timeout=TIMEOUT)


def play(
    control: socket.socket,
    endpoint: ofipy.Endpoint,
    peer: ofipy.Peer | None,
    *,
    server: bool,
    sizes: list[int],
    iterations: int,
) -> None:
    """Play one side with the messages' contents left as they come."""
    for size in sizes:
        _sync(control, server=server)
        out, room = bytes(size), bytearray(max(size, 64))
        for _ in range(iterations):
            if not server:
                endpoint.send(out, peer).wait(timeout=TIMEOUT)
            assert endpoint.recv_into(room, peer).wait(timeout=TIMEOUT).length == size
            if server:
                # What they check is their own text: send it back.
                endpoint.send(bytes(room[:size]), peer).wait(timeout=TIMEOUT)
        if server:
            assert int(_receive(control, 10).rstrip(b"\0")) == iterations
            control.sendall(b"cnt ok\0")
        else:
            control.sendall(str(iterations).encode().ljust(10, b"\0"))
            assert _receive(control, 7) == b"cnt ok\0"
    last = bytearray(64)
    receive = endpoint.recv_into(last, peer)
    endpoint.send(b"fin\0", peer, complete="transmit").wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    assert last[:4] == b"fin\0"


def open_for(kind: str) -> ofipy.Endpoint:
    """An endpoint on the wire that the program has."""
    if kind == "dgram":
        return ofipy.open(provider="ofi:udp", ep_type=kind, caps="msg")
    return ofipy.open(provider="tcp", ep_type=kind)


def serve(control: socket.socket, kind: str, sizes: list[int], iterations: int) -> None:
    """One client."""
    if kind == "msg":
        with ofipy.listen(provider="tcp") as listener, accept(control, listener) as endpoint:
            play(control, endpoint, None, server=True, sizes=sizes, iterations=iterations)
    else:
        with open_for(kind) as endpoint:
            peer = meet(control, endpoint, server=True)
            play(control, endpoint, peer, server=True, sizes=sizes, iterations=iterations)


def ask(control: socket.socket, kind: str, sizes: list[int], iterations: int) -> None:
    """One server."""
    with open_for(kind) as endpoint:
        peer = None
        if kind == "msg":
            connect(control, endpoint)
        else:
            peer = meet(control, endpoint, server=False)
        play(control, endpoint, peer, server=False, sizes=sizes, iterations=iterations)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(
        description="The other side of fi_pingpong, over ofipy's tcp and ofi:udp."
    )
    parser.add_argument(
        "host", nargs="?", help="where fi_pingpong serves; default: serve one client of its kind"
    )
    parser.add_argument(
        "-e", dest="kind", choices=("rdm", "msg", "dgram"), default="rdm", help="type of the endpoints"
    )
    parser.add_argument("-S", dest="sizes", type=int, nargs="+", help="as there")
    parser.add_argument("-I", dest="iterations", type=int, default=10, help="as there")
    parser.add_argument(
        "-p", dest="port", type=int, default=PORT, help="of the control connection (theirs: -B, -P)"
    )
    options = parser.parse_args()
    sizes = options.sizes or (DATAGRAM_SIZES if options.kind == "dgram" else SIZES)
    if options.host is None:
        with socket.create_server(("", options.port)) as listener:
            control, _ = listener.accept()
    else:
        control = socket.create_connection((options.host, options.port), timeout=TIMEOUT)
    with control:
        started = time.perf_counter()
        (serve if options.host is None else ask)(control, options.kind, sizes, options.iterations)
        round_trips = len(sizes) * options.iterations
        print(f"{round_trips} round trips in {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
