# SPDX-License-Identifier: BSD-3-Clause
"""What the bridge knows of single providers of libfabric's."""

from pathlib import Path

import numpy as np
import pytest

import ofipy

TIMEOUT = 20


def offered(provider: str) -> ofipy.Info:
    """What an installed libfabric, the system's or that of a wheel, says of a provider."""
    for report in ofipy.getinfo(explain=True, provider=provider):
        for info in report.infos:
            if info.provider == provider:
                return info
    pytest.skip(f"a libfabric with {provider} is not installed")


def test_a_fetching_read_over_sm2_is_refused() -> None:
    offered("ofi:sm2")
    table = Path("/dev/shm/fi_sm2_mmaps")
    was_there = table.exists()
    with ofipy.open(provider="ofi:sm2") as a, ofipy.open(provider="ofi:sm2") as b:
        peer, memory = a.insert(b.address), np.array([5], np.int64)
        remote = b.register(memory, access="remote_read|remote_write").remote
        with pytest.raises(ofipy.NotSupported, match="ofi:sm2"):
            a.fetch_atomic(np.int64(0), peer, remote, op="read").wait(timeout=TIMEOUT)
        # Another operation that reads answers right.
        assert a.fetch_atomic(np.int64(3), peer, remote, op="sum").wait(timeout=TIMEOUT) == 5
        assert a.fetch_atomic(np.int64(0), peer, remote, op="sum").wait(timeout=TIMEOUT) == 8
    if not was_there:
        table.unlink(missing_ok=True)


def test_ofi_rxm_has_atomics() -> None:
    caps = offered("ofi:tcp;ofi_rxm").caps
    assert ofipy.Cap.ATOMIC in caps
    assert ofipy.Cap.DIRECTED_RECV in caps


def test_messages_that_no_socket_took_are_told_at_close() -> None:
    """libfabric takes short ones of a connection for done as soon as they are posted."""
    offered("ofi:tcp")
    info, count = ofipy.getinfo(provider="ofi:tcp", ep_type="msg")[0], 100_000
    here, there = (ofipy.Fabric(info).domain(progress="auto") for _ in range(2))
    try:
        listener = here.passive_endpoint()
        listener.listen()
        client = there.endpoint().enable()
        connection = client.connect(listener.address)
        server = listener.wait(timeout=TIMEOUT).accept()
        connection.wait(timeout=TIMEOUT)
        address = str(client.peer_address)
        ofipy.wait_all([client.send(bytes(64)) for _ in range(count)], timeout=TIMEOUT)
        with pytest.raises(ofipy.NotSent) as caught:
            client.close(linger=0.5)
        assert 0 < caught.value.count <= count
        assert caught.value.peers == (address,)
        assert not server.closed
    finally:
        for domain in here, there:
            domain.fabric.close(linger=0)
