# SPDX-License-Identifier: BSD-3-Clause
"""Exchange of addresses by TCP beside the fabric, for networks that cannot find a server by name."""

import socket
import struct
from io import BufferedRWPair

__all__ = ["swap_addresses"]

LENGTH = struct.Struct("!I")
LONGEST = 4096  # bytes of an address; anything beyond comes from a stranger


def swap_addresses(mine: str, *, host: str | None, port: int) -> str:
    """Exchange addresses over a TCP connection beside the fabric.

    Parameters
    ----------
    mine : str
        This side's address.
    host : str, optional
        Where the server is; None: be the server, for one client.
    port : int
        TCP port of the exchange.

    Returns
    -------
    str
        The other side's address.

    Raises
    ------
    ConnectionError
        When the other side closes early or sends something else.
    """
    if host is None:
        with socket.create_server(("", port)) as listener:
            connection, _ = listener.accept()
    else:
        connection = socket.create_connection((host, port))
    with connection, connection.makefile("rwb") as stream:
        encoded = mine.encode()
        stream.write(LENGTH.pack(len(encoded)) + encoded)
        stream.flush()
        (length,) = LENGTH.unpack(read_exactly(stream, LENGTH.size))
        return read_exactly(stream, length).decode()


def read_exactly(stream: BufferedRWPair, size: int) -> bytes:
    """Read `size` bytes or fail."""
    if size > LONGEST:
        raise ConnectionError(f"what answered on the out-of-band port announces an address of {size} bytes")
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionError(
            "the other side closed the out-of-band connection before it had sent its address"
        )
    return data
