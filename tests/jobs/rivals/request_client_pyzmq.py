# SPDX-License-Identifier: BSD-3-Clause
"""The client of request and reply of docs/how-to over pyzmq: ADDRESS."""

import sys
from typing import Any

import zmq

with zmq.Context() as context, context.socket(zmq.REQ) as socket:
    socket.connect(sys.argv[1])

    def call(name: str, *arguments: float) -> Any:
        socket.send_json([name, arguments])
        return socket.recv_json()

    print(call("divide", 1, 8), call("hypotenuse", 3, 4))
