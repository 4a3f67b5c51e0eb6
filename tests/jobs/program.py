# SPDX-License-Identifier: BSD-3-Clause
"""What every launcher runs unchanged: all that a job can do, checked by each process."""

import sys

import numpy as np

import ofipy

job = ofipy.job()
assert ofipy.job() is job
if len(sys.argv) > 2:
    assert job.launcher == sys.argv[2], job.launcher
assert len(job.hosts) == job.size
assert 0 <= job.local_rank < job.local_size <= job.size

# Of different lengths; more than once, so that a fast process is ahead of a slow one.
for times in range(5):
    blocks = job.exchange(bytes([job.rank]) * (job.rank * 1000 + times))
    assert blocks == [bytes([rank]) * (rank * 1000 + times) for rank in range(job.size)]
job.barrier()

with ofipy.open() as ep:
    peers = job.peers(ep)
    assert [int(peer) for peer in peers] == list(range(job.size))
    assert job.size == 1 or not ep.address.connects_only
    assert peers[job.rank].address.same_endpoint(ep.address)
    mine, theirs = np.full(100_000, job.rank), np.empty(100_000, int)
    coming = ep.trecv_into(theirs, peers[job.rank - 1], tag=1)
    ep.tsend(mine, peers[(job.rank + 1) % job.size], tag=1).wait(timeout=30)
    coming.wait(timeout=30)
    assert (theirs == (job.rank - 1) % job.size).all()
    ways = {ep.way(peer) for peer in peers}
    job.barrier()

# In one piece: launchers mix what comes in several.
ways_of_all = "+".join(sorted(ways))
here = f"{job.local_rank} of {job.local_size} here"
sys.stdout.write(f"rank {job.rank} of {job.size}, {here}, over {ways_of_all}\n")
if len(sys.argv) > 1 and sys.argv[1] != "all":
    assert job.size == int(sys.argv[1])
