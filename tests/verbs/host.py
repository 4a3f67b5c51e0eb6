# SPDX-License-Identifier: BSD-3-Clause
"""One of two hosts, each a guest of its own: ``host.py FOLDER here|there``. They tell each other by files in a folder.

``here`` prints a line for each thing that it has seen; test_two_hosts.py reads them.
"""

import subprocess
import sys
import time
from pathlib import Path

import ofipy

TIMEOUT = 60
SIZES = [0, 1, 1000, 4096, 70_000, 1 << 20]
# Nothing of the other is heard, by the port of RoCE v2. Soft-RoCE knows of what may not leave, and fails at once.
RULE = ["INPUT", "-p", "udp", "--dport", "4791", "-j", "DROP"]

folder = Path(sys.argv[1])


def tell(name: str, content: bytes = b"") -> None:
    draft = folder / f"{name}.draft"
    draft.write_bytes(content)
    draft.rename(folder / name)


def hear(name: str) -> bytes:
    deadline = time.monotonic() + TIMEOUT
    while not (folder / name).exists():
        assert time.monotonic() < deadline, f"nothing is heard of {name}"
        time.sleep(0.1)
    return (folder / name).read_bytes()


def say(line: str) -> None:
    print(line, flush=True)


def domain_of(kind: str) -> ofipy.Domain:
    return ofipy.Fabric(ofipy.getinfo(provider="verbs", ep_type=kind)[0]).domain(progress="auto")


def pattern(size: int) -> bytes:
    return bytes(range(251)) * (size // 251 + 1)


def connect(domain: ofipy.Domain, name: str) -> ofipy.Endpoint:
    """Here."""
    endpoint = domain.endpoint().enable()
    endpoint.connect(hear(name)).wait(timeout=TIMEOUT)
    return endpoint


def accept(domain: ofipy.Domain, name: str) -> ofipy.Endpoint:
    """There."""
    listener = domain.passive_endpoint()
    listener.listen()
    tell(name, bytes(listener.address))
    return listener.wait(timeout=TIMEOUT).accept()


def fails(endpoint: ofipy.Endpoint) -> str:
    """What a send says when nobody acknowledges it."""
    started = time.monotonic()
    try:
        endpoint.send(b"anybody there?", complete="transmit").wait(timeout=TIMEOUT)
    except ofipy.FabricError as error:
        return f"{type(error).__name__} after {time.monotonic() - started:.1f} s: {error}"
    return "it was acknowledged"


def here() -> None:
    connected, datagrams = domain_of("msg"), domain_of("dgram")
    endpoint = connect(connected, "first")
    for size in SIZES:
        endpoint.send(pattern(size)[:size]).wait(timeout=TIMEOUT)
    region = ofipy.RemoteRegion.from_bytes(hear("region"))
    endpoint.write(b"from afar", endpoint.peer, region[:9], complete="delivery").wait(timeout=TIMEOUT)
    room = bytearray(9)
    endpoint.read(room, endpoint.peer, region[:9]).wait(timeout=TIMEOUT)
    say(f"read {room.decode()}")

    datagram = datagrams.endpoint().enable()
    tell("datagram here", bytes(datagram.address))
    peer = datagram.insert(hear("datagram there"))
    receive = datagram.recv()
    datagram.send(b"one packet", peer).wait(timeout=TIMEOUT)
    message = receive.wait(timeout=TIMEOUT)
    say(f"datagram {message.data.decode()}, source {'known' if message.source == peer else message.source}")

    subprocess.run(["iptables-legacy", "-A", *RULE], check=True)
    say(f"partition: {fails(endpoint)}")
    subprocess.run(["iptables-legacy", "-D", *RULE], check=True)
    endpoint = connect(connected, "second")
    endpoint.send(b"again").wait(timeout=TIMEOUT)
    hear("again")
    say("together again")
    waiting = endpoint.recv_into(bytearray(8))
    say("kill the other")
    hear("killed")
    say(f"death: {fails(endpoint)}")
    try:
        waiting.wait(timeout=TIMEOUT)
    except ofipy.FabricError as error:
        say(f"receive: {error}")


def there() -> None:
    connected, datagrams = domain_of("msg"), domain_of("dgram")
    endpoint = accept(connected, "first")
    memory = bytearray(4096)
    region = endpoint.register(memory, access="remote_read|remote_write")
    tell("region", bytes(region.remote))
    for size in SIZES:
        room = bytearray(size)
        assert endpoint.recv_into(room).wait(timeout=TIMEOUT).length == size
        assert room == pattern(size)[:size]

    datagram = datagrams.endpoint().enable()
    # Known before it sends: a datagram of somebody who is not has no source.
    peer = datagram.insert(hear("datagram here"))
    tell("datagram there", bytes(datagram.address))
    message = datagram.recv().wait(timeout=TIMEOUT)
    assert (message.data, message.source) == (b"one packet", peer), message
    datagram.send(b"another", peer).wait(timeout=TIMEOUT)

    again = accept(connected, "second")
    assert again.recv().wait(timeout=TIMEOUT).data == b"again"
    tell("again")
    time.sleep(1000)


{"here": here, "there": there}[sys.argv[2]]()
