# SPDX-License-Identifier: BSD-3-Clause
"""Clients that nobody inserted come and go: a server keeps the last ones, and no object of the others."""

import pytest

import ofipy

TIMEOUT = 20
KEPT, BATCH = 1024, 64
PROVIDERS = {"tcp": {"provider": "tcp", "node": "127.0.0.1"}, "link": {"provider": "link:shm+tcp"}}


def come_and_go(server: ofipy.Endpoint, times: int) -> list[ofipy.Peer]:
    """As many clients send a message each and leave."""
    seen = []
    for _ in range(times):
        with ofipy.open(provider="tcp" if server.provider == "tcp" else "link:shm+tcp") as client:
            client.tsend(b"x", client.insert(bytes(server.address)), tag=1)
            seen.append(server.trecv(tag=1).wait(timeout=TIMEOUT).source)
    return seen


@pytest.mark.parametrize("provider", list(PROVIDERS))
def test_the_last_ones_are_kept(provider: str) -> None:
    with ofipy.open(**PROVIDERS[provider]) as server:
        first, second = come_and_go(server, 2)
        assert server.insert(second.address) == second
        latest = come_and_go(server, 2 * KEPT + 2 * BATCH)[-1]
        assert len(server.av) <= KEPT + BATCH + 1
        assert {first, second, latest} & set(server.av) == {second, latest}
        # Python's objects are dropped in larger batches.
        assert len(list(server.av.peers())) <= 2 * (KEPT + BATCH) + 1
        with pytest.raises(ofipy.UnknownPeer):
            server.tsend(b"y", first, tag=1)
        with pytest.raises(ofipy.UnknownPeer):
            _ = first.address
        assert str(latest.address).startswith(("tcp://", "link://"))
