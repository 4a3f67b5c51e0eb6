# SPDX-License-Identifier: BSD-3-Clause
"""Repeat the first connection request of a caller, each time as another caller, none of which ever proves anything.

``flood.py ADDRESS RATE`` sends that many a second, from "begun" until its standard input ends, and then prints what it
has sent. ``flood.py ADDRESS stale`` sends one request in the name of the queue pair that the caller has connected.

An endpoint of ofipy makes the first request. It is taken off the cable, and its copies get other numbers of the
conversation and of the queue pair. They leave by a raw socket.
"""

import json
import os
import random
import select
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import ofipy

sys.path.insert(0, str(Path(__file__).parent))

import wire

COPIES = 10_000
TIMEOUT = 60


def requests(cable: socket.socket, target: str) -> Iterator[bytes]:
    """Wait for each request to the target; the packet from its IP header on, without checksum."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        packet = cable.recv(65536)[wire.ETHERNET :]
        if packet[16:20] == socket.inet_aton(target) and wire.mad_of(packet, wire.REQUEST):
            assert wire.checksum(packet[:-4]) == packet[-4:], "this is not how the checksum is made"
            yield packet[:-4]
    raise TimeoutError(f"no request to {target} has left")


def queue_pair_of(request: bytes) -> bytes:
    place = wire.START + wire.QUEUE_PAIR
    return request[place : place + 3]


def copy(request: bytes, *, queue_pair: int | None) -> bytes:
    """The request of another caller, or of the same queue pair."""
    changed = bytearray(request)
    # In the place of a zero the kernel would put another number, for which the checksum is wrong.
    changed[4:6] = b"\0\1"
    changed[wire.IP + 6 : wire.IP + wire.UDP] = b"\0\0"
    for place, size in (wire.TRANSACTION, 8), (wire.CONVERSATION, 4):
        changed[wire.START + place : wire.START + place + size] = random.randbytes(size)
    if queue_pair is not None:
        place = wire.START + wire.QUEUE_PAIR
        changed[place : place + 3] = queue_pair.to_bytes(3, "big")
    return bytes(changed) + wire.checksum(bytes(changed))


def flood(raw: socket.socket, target: str, copies: list[bytes], rate: int) -> None:
    """Send them at this rate until standard input ends."""
    print("begun", flush=True)
    began = time.monotonic()
    sent = 0
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        due = int((time.monotonic() - began) * rate) + 1
        while sent < due:
            raw.sendto(copies[sent % len(copies)], (target, 0))
            sent += 1
    print(json.dumps({"sent": sent, "seconds": time.monotonic() - began}), flush=True)


def main() -> None:
    address, how = sys.argv[1:]
    target = address.rpartition(":")[0].rpartition("/")[2]
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    with wire.listen() as cable, ofipy.open(provider="verbs", progress="auto") as caller:
        cable.settimeout(TIMEOUT)
        caller.tsend(b"", caller.insert(address), tag=0, complete="transmit").wait(timeout=TIMEOUT)
        made = requests(cable, target)
        request = next(made)
        if how == "stale":
            # Each request of a caller with a key states a queue pair of its own; that of the second one is connected.
            proof = next(each for each in made if queue_pair_of(each) != queue_pair_of(request))
            raw.sendto(copy(proof, queue_pair=None), (target, 0))
            print("sent", flush=True)
            os.read(0, 1)
            return
    # A device gives out its numbers from below.
    numbers = random.sample(range(1 << 23, 1 << 24), COPIES)
    flood(raw, target, [copy(request, queue_pair=number) for number in numbers], int(how))


if __name__ == "__main__":
    main()
