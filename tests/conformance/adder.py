# SPDX-License-Identifier: BSD-3-Clause
"""Several that add one to the same counter, again and again: a program of many processes, and what each does."""

import json
import os
import sys
import traceback

import numpy as np
from sides import Target, part_hosts

import ofipy

WINDOW = 64


def add(ep: ofipy.Endpoint, address: bytes, blob: bytes, count: int) -> np.ndarray:
    """Fetch-add `count` times, many in flight; what came back."""
    peer, remote = ep.insert(address), ofipy.RemoteRegion.from_bytes(blob)
    fetched = np.zeros(count, np.uint64)
    one, results = ep.register(np.ones(1, np.uint64)), ep.register(fetched)
    ops = ep.domain.operations(count)
    ops["op"], ops["atomic_op"] = ofipy.Op.FETCH_ATOMIC, ofipy.AtomicOp.SUM
    ops["datatype"], ops["peer"], ops["region"], ops["length"] = ofipy.Datatype.UINT64, peer, one.id, 8
    ops["remote_key"], ops["remote_offset"] = remote.key, remote.offset
    ops["result_region"], ops["result_offset"] = results.id, 8 * np.arange(count)
    done, posted, finished = ep.cq.batch(WINDOW), 0, 0
    while finished < count:
        if posted < count and posted - finished < WINDOW:
            try:
                posted += ep.post(ops[posted : min(finished + WINDOW, count)])
            except ofipy.Again:
                ep.domain.progress()
        rows = done.wait(timeout=30)
        if rows["error"].any():
            raise ep.cq.exception(rows[rows["error"] != 0][0]) or AssertionError
        finished += len(rows)
    return fetched


def start(result: str, options: dict[str, str | int]) -> int:
    """Fork a process that opens an endpoint, adds and keeps what came back. Returns its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        target = Target(options["provider"], options["domain"], False, remote=options["remote"])
        part_hosts(target)
        ep = target.open()
        fetched = add(ep, bytes.fromhex(options["address"]), bytes.fromhex(options["blob"]), options["count"])
        ep.fabric.close()
        np.save(result, fetched)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    """Run one process for each result, which share what it costs to import ofipy."""
    options = json.loads(sys.argv[1])
    children = [start(result, options) for result in options["results"]]
    statuses = [os.waitpid(child, 0)[1] for child in children]
    sys.exit(any(statuses))


if __name__ == "__main__":
    main()
