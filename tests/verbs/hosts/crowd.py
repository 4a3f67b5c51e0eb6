# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of one host in a job, each a process: ``crowd.py PROVIDER SIZE FIRST COUNT``. All send to all at once.

Rank 0 prints how many messages each provider carried. The processes are forked, since an emulated processor needs
seconds to start Python and import ofipy; nothing has opened a device before.
"""

import json
import os
import sys
import traceback
from collections import Counter

import ofipy

SECONDS = 240


def take_part(provider: str, rank: int, size: int) -> None:
    """Be one rank."""
    # Rank 0 is the first one here; each host has the same number of ranks.
    hosts = ["here", "there"]
    with ofipy.job(addresses=[hosts[each * 2 // size] for each in range(size)], rank=rank) as job:
        ep = ofipy.open(provider=provider)
        peers = job.peers(ep, timeout=SECONDS)
        others = [(rank + step) % size for step in range(1, size)]
        receives = {each: ep.trecv(peers[each], tag=each) for each in others}
        job.barrier(timeout=SECONDS)
        sends = [ep.tsend(f"{rank} to {each}".encode(), peers[each], tag=rank) for each in others]
        ofipy.wait_all([*sends, *receives.values()], timeout=SECONDS)
        for each, receive in receives.items():
            assert bytes(receive.wait().data) == f"{each} to {rank}".encode()
        ways = Counter(ep.way(peers[each]) for each in others)
        told = [
            Counter(json.loads(each)) for each in job.exchange(json.dumps(ways).encode(), timeout=SECONDS)
        ]
        if rank == 0:
            print(json.dumps(sum(told, Counter())), flush=True)
        ep.close()


def main() -> None:
    provider = sys.argv[1]
    size, first, count = map(int, sys.argv[2:])
    os.environ["OFIPY_CONNECT_TIMEOUT"] = os.environ["OFIPY_JOB_TIMEOUT"] = str(SECONDS)
    children = []
    for rank in range(first, first + count):
        child = os.fork()
        if not child:
            status = 1
            try:
                take_part(provider, rank, size)
                status = 0
            except Exception:
                print(f"rank {rank}:", file=sys.stderr)
                traceback.print_exc()
            finally:
                os._exit(status)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    sys.exit(any(statuses))


if __name__ == "__main__":
    main()
