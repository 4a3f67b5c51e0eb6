# SPDX-License-Identifier: BSD-3-Clause
"""The TCP connection beside the fabric."""

import threading

import pytest

import ofipy
from fabtests.base.channel import Channel, connect, listen
from fabtests.base.out_of_band import BLOCK, OutOfBand, pack_name, unpack_name
from fabtests.base.program import Failed


def test_both_sides_meet() -> None:
    server = OutOfBand(host=None, port=0, node="127.0.0.1")
    client = OutOfBand(host="127.0.0.1", port=server.port)
    server.accept()
    other = threading.Thread(target=lambda: (client.ready(), client.sync()))
    other.start()
    server.ready()
    server.sync()
    other.join()
    client.close()
    with pytest.raises(Failed, match="closed"):
        server.sync()
    server.close()


def test_bytes_come_in_the_sizes_that_are_asked_for() -> None:
    with listen(0, "127.0.0.1") as listener:
        connection = connect("127.0.0.1", listener.getsockname()[1])
        with Channel(connection) as client, Channel(listener.accept()[0], name="pipe") as server:
            client.send_bytes(b"abcd")
            client.send(number=1)
            assert server.receive_bytes(1) == b"a"
            assert server.receive_bytes(3) == b"bcd"
            assert server.receive(number=int) == {"number": 1}
            client.close()
            with pytest.raises(Failed, match="closed the pipe"):
                server.receive_bytes(1)


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_names_travel_in_blocks(provider: str) -> None:
    with ofipy.open(provider=provider) as endpoint:
        block = pack_name(endpoint)
        assert len(block) == BLOCK
        assert unpack_name(endpoint, block) == endpoint.address.raw(provider)
        assert unpack_name(endpoint, endpoint.address.raw(provider)) == endpoint.address.raw(provider)


def test_of_a_c_programs_block_only_the_address_is_read() -> None:
    with ofipy.open(provider="tcp") as endpoint:
        name = endpoint.address.raw("tcp")
        assert unpack_name(endpoint, name + b"\xff" * (BLOCK - len(name))) == name
