# SPDX-License-Identifier: BSD-3-Clause
"""What ``tests.instructions`` counts: sends and receives of 8 bytes, from an endpoint to itself over shm.

Arguments: how many rounds, and what a round is: ``transfer`` is a native send and receive, ``progress`` only makes
progress. ``blocking`` and ``prepared`` are the modes of ``fabtests compare``. The first two run with builds of any age,
so they call C themselves, and look for the binding where it was and where it is.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import ofipy

_binding = import_module("ofipy._base.binding" if find_spec("ofipy._base") else "ofipy._binding")
ffi, lib = _binding.ffi, _binding.lib


def record(endpoint: Any, op: ofipy.Op, buffer: Any) -> Any:
    operation = ffi.new("struct ofp_operation *")
    operation.op, operation.tag = op.value, 7
    operation.offset, operation.length = buffer.ctypes.data, buffer.nbytes
    operation.peer = int(endpoint.insert(endpoint.address))
    return operation


def exchange_blocking(endpoint: Any, rounds: int, outgoing: Any, incoming: Any) -> None:
    peer, send, receive = endpoint.insert(endpoint.address), endpoint.tsend, endpoint.trecv_into
    for _ in range(rounds):
        send(outgoing, peer, tag=7).wait()
        receive(incoming, peer, tag=7).wait()


def exchange_prepared(endpoint: Any, rounds: int, outgoing: Any, incoming: Any) -> None:
    peer, start = endpoint.insert(endpoint.address), ofipy.start
    send = endpoint.prepare_tsend(outgoing, peer, tag=7)
    receive = endpoint.prepare_trecv(incoming, peer, tag=7)
    wait_send, wait_receive = send.wait, receive.wait
    for _ in range(rounds):
        start(send, receive)
        wait_receive()
        wait_send()


EXCHANGES = {"blocking": exchange_blocking, "prepared": exchange_prepared}


def main() -> None:
    rounds, transfers = int(sys.argv[1]), sys.argv[2] == "transfer"
    with ofipy.open(provider="shm", progress="manual") as endpoint:
        outgoing, incoming = np.arange(8, dtype="u1"), np.zeros(8, "u1")
        if sys.argv[2] in EXCHANGES:
            EXCHANGES[sys.argv[2]](endpoint, rounds, outgoing, incoming)
            assert (incoming == outgoing).all()
            return
        pointer, domain = endpoint._pointer("post"), endpoint.domain._pointer("progress")
        cq, rows = endpoint.cq._pointer("read"), ffi.new("struct ofp_completion[2]")
        receive = record(endpoint, ofipy.Op.TRECV, incoming)
        send = record(endpoint, ofipy.Op.TSEND, outgoing)
        for _ in range(rounds):
            if not transfers:
                lib.ofp_domain_progress(domain)
                continue
            assert lib.ofp_post(pointer, receive, 1) == 1
            assert lib.ofp_post(pointer, send, 1) == 1
            lib.ofp_domain_progress(domain)
            assert lib.ofp_cq_read(cq, rows, 2) == 2
        assert not transfers or (incoming == outgoing).all()


if __name__ == "__main__":
    main()
