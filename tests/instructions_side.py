# SPDX-License-Identifier: BSD-3-Clause
"""What ``tests.instructions`` counts: native sends and receives of 8 bytes, from an endpoint to itself over shm.

Arguments: how many rounds, and ``transfer``, or ``progress`` for rounds that only make progress. It runs with builds of
any age, so it calls C itself, and looks for the binding where it was and where it is.
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


def main() -> None:
    rounds, transfers = int(sys.argv[1]), sys.argv[2] == "transfer"
    with ofipy.open(provider="shm", progress="manual") as endpoint:
        outgoing, incoming = np.arange(8, dtype="u1"), np.zeros(8, "u1")
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
