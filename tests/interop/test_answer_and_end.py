# SPDX-License-Identifier: BSD-3-Clause
"""A program over libfabric that answers and ends: its last message, though nobody waited for more, arrives."""

import subprocess
import sys

import pytest

import ofipy

TIMEOUT = 30

SERVER = """
import sys
import ofipy

with ofipy.open(provider=sys.argv[1]) as ep:
    # Before a client can send: libfabric's sockets drops the data by which a sender names itself when the message
    # comes before its receive, and then there is nobody to answer.
    receive = ep.trecv(tag=7)
    print(ep.address, flush=True)
    message = receive.wait(timeout=30)
    ep.tsend(message.data + b" pong", message.source, tag=8).wait(timeout=30)
"""


def offered(name: str) -> bool:
    try:
        return bool(ofipy.getinfo(provider=name, ep_type="rdm"))
    except ofipy.ProviderUnavailable:
        return False


@pytest.mark.parametrize(
    "provider", ["ofi:shm", "ofi:sockets", "ofi:net", "ofi:tcp;ofi_rxm", "ofi:udp;ofi_rxd"]
)
@pytest.mark.parametrize("size", [4, 100_000])
def test_the_answer_arrives(provider: str, size: int) -> None:
    if not offered(provider):
        pytest.skip(f"this libfabric has no rdm endpoints of {provider}")
    command = [sys.executable, "-P", "-c", SERVER, provider]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        ofipy.open(provider=provider) as ep,
    ):
        assert server.stdout is not None
        peer = ep.insert(server.stdout.readline().strip())
        ep.tsend(bytes(size), peer, tag=7).wait(timeout=TIMEOUT)
        assert ep.trecv(tag=8).wait(timeout=TIMEOUT).data == bytes(size) + b" pong"
        assert server.wait(TIMEOUT) == 0
