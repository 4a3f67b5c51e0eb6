# SPDX-License-Identifier: BSD-3-Clause
"""Data that comes with a connection, its acceptance and its refusal, in growing sizes."""

import rich_click as click

import ofipy
from fabtests.base.out_of_band import OutOfBand
from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session
from fabtests.base.where import host_of


def refuse_and_accept(session: Session, size: int) -> None:
    """Server: refuse the first request, accept the second, both with data."""
    assert session.listener is not None
    request = session.listener.wait(timeout=session.limit)
    check_bytes(session, request.data, size)
    request.reject(data=pattern(size).tobytes())
    request = session.listener.wait(timeout=session.limit)
    check_bytes(session, request.data, size)
    endpoint = request.accept(data=pattern(size).tobytes())
    endpoint.shutdown().wait(timeout=session.limit)
    endpoint.close()


def ask_twice(session: Session, size: int) -> None:
    """Client: be refused, then accepted, and look at the data of both."""
    data = pattern(size).tobytes()
    endpoint = session.make_endpoint()
    try:
        endpoint.connect(session.server_address(), data=data).wait(timeout=session.limit)
    except ofipy.ConnectionRefused as refusal:
        check_bytes(session, refusal.data, size)
    else:
        session.expect(False, "the server should have refused")
    endpoint.close()
    endpoint = session.make_endpoint()
    answer = endpoint.connect(session.server_address(), data=data).wait(timeout=session.limit)
    check_bytes(session, answer, size)
    endpoint.shutdown().wait(timeout=session.limit)
    endpoint.close()


def check_bytes(session: Session, data: bytes, size: int) -> None:
    """The pattern of that size, padded perhaps."""
    import numpy as np

    session.expect(len(data) >= size, f"{len(data)} bytes where {size} were sent")
    check(np.frombuffer(data[:size], np.uint8), "private data")


def run(session: Session) -> None:
    """Sizes 1, 2, 4 … up to what the provider carries; then one too long."""
    largest = session.domain.info.max_private_data
    host = host_of(session.options.host) if session.options.host else None
    beside = session.oob or OutOfBand(host=host, port=session.options.extra["port"])
    if session.oob is None and not session.client:
        beside.accept()
    size = 1
    while size <= largest:
        (ask_twice if session.client else refuse_and_accept)(session, size)
        beside.ready()
        size *= 2
    if session.client:
        try:
            session.make_endpoint().connect(session.server_address(), data=bytes(largest + 1)).wait(timeout=1)
        except ofipy.FabricError as error:
            session.expect(not isinstance(error, ofipy.TimedOut), f"{largest + 1} bytes were not refused")
    session.passed(f"sizes up to {largest}")


PROGRAM = Program(
    summary="Private data of connection requests, accepts and rejects.",
    run=run,
    ep_type="msg",
    meet=False,
    post=False,
    end=False,
    options=(
        click.option(
            "-q",
            "port",
            type=int,
            default=2710,
            show_default=True,
            help="Port of the out-of-band TCP connection.",
        ),
    ),
)
