# SPDX-License-Identifier: BSD-3-Clause
"""One of several that add one to the same counter, again and again; as a program, and as a function."""

import json
import sys

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


def main() -> None:
    options = json.loads(sys.argv[1])
    target = Target(options["provider"], options["domain"], False, remote=options["remote"])
    part_hosts(target)
    ep = target.open()
    fetched = add(ep, bytes.fromhex(options["address"]), bytes.fromhex(options["blob"]), options["count"])
    ep.fabric.close()
    np.save(options["result"], fetched)


if __name__ == "__main__":
    main()
