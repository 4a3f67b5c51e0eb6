# SPDX-License-Identifier: BSD-3-Clause
"""The queue of work of docs/how-to over pyzmq: ADDRESS RANK SIZE."""

import sys
from collections.abc import Iterator
from typing import Any

import zmq

Result = tuple[int, int]


def work(number: int) -> Result:
    return number, sum(range(number))


def serve(tasks: Iterator[int], workers: int) -> list[Result]:
    results = []
    while workers:
        result, task = socket.recv_pyobj(), next(tasks, None)
        if result is not None:
            results.append(result)
        socket.send_pyobj(task)
        workers -= task is None
    return results


def ask(result: Result | None) -> Any:
    socket.send_pyobj(result)
    return socket.recv_pyobj()


address, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with zmq.Context() as context, context.socket(zmq.REQ if rank else zmq.REP) as socket:
    if rank == 0:
        socket.bind(address)
        results = serve(iter(range(1000)), size - 1)
        print(len(results), "results, the largest", max(results))
    else:
        socket.connect(address)
        task = ask(None)
        while task is not None:
            task = ask(work(task))
