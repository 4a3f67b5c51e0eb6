# SPDX-License-Identifier: BSD-3-Clause
"""The server of request and reply of docs/how-to over pyzmq: ADDRESS."""

import sys

import zmq


def divide(one: float, other: float) -> float:
    return one / other


functions = {"divide": divide, "hypotenuse": lambda *sides: sum(side**2 for side in sides) ** 0.5}

with zmq.Context() as context, context.socket(zmq.REP) as socket:
    socket.bind(sys.argv[1])
    for _ in range(2):
        name, arguments = socket.recv_json()
        socket.send_json(functions[name](*arguments))
