# SPDX-License-Identifier: BSD-3-Clause
"""A job, a Dask cluster and a benchmark on two hosts, with a key: all go over the device."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, Scheduler
from login import ADDRESSES
from other_host import PYTHON, OtherHost, run, sent_packets, started_by

pytestmark = pytest.mark.timeout(200)
SECONDS = 150
MTU = 4096
PERF_PORT = 18515
ARRAY_BYTES = 64 << 20
REPETITIONS = 100
MULTINODE = [*PYTHON, "-m", "fabtests", "multinode", "-x", "ring", "-I", str(REPETITIONS), "--json"]


@pytest.mark.parametrize("launcher", ["ofipy run", "mpiexec"])
def test_job(launcher: str, there: OtherHost) -> None:
    before = sent_packets(), sent_packets(there)
    printed = run([*started_by(launcher, there.ssh), *MULTINODE], seconds=SECONDS)
    after = sent_packets(), sent_packets(there)
    told = json.loads("\n".join(line.removeprefix("[0] ") for line in printed.splitlines()))
    assert told["transfers"] == 2 * REPETITIONS
    assert told["ways"] == {"verbs": 2 * REPETITIONS}, told["provider"]
    # Each host has sent one message a repetition.
    for one, other in zip(before, after, strict=True):
        assert other - one >= REPETITIONS


def test_dask(there: OtherHost) -> None:
    """An array goes to the worker there, and what the worker makes of it comes back."""
    asyncio.run(asyncio.wait_for(move_by_dask(there), SECONDS))


async def move_by_dask(there: OtherHost) -> None:
    before = sent_packets(), sent_packets(there)
    sent = np.arange(ARRAY_BYTES // 8)
    options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "0"]
    async with Scheduler(protocol="ofi", host=ADDRESSES["here"], dashboard=False) as scheduler:
        program = [*PYTHON, "-m", "dask", "worker", scheduler.address, *options]
        with there.running(*program) as worker:
            async with Client(scheduler.address, asynchronous=True) as client:
                await client.wait_for_workers(1, timeout=SECONDS)
                (address,) = client.scheduler_info()["workers"]
                assert address.startswith(f"ofi://{there.address}:")
                given = await client.scatter(sent, direct=True)
                returned = await client.gather(client.submit(np.flip, given), direct=True)
                assert np.array_equal(returned, np.flip(sent))
                comm = await client.rpc.connect(address)
                assert comm.extra_info == {"way": "verbs"}
                client.rpc.reuse(address, comm)
                await client.shutdown()
            await asyncio.to_thread(worker.wait, SECONDS)
    after = sent_packets(), sent_packets(there)
    for one, other in zip(before, after, strict=True):
        assert other - one >= ARRAY_BYTES // MTU


def test_write_bw(there: OtherHost, tmp_path: Path) -> None:
    report, writes, size = tmp_path / "report.json", 200, 65536
    options = ["-s", str(size), "-n", str(writes), "-p", str(PERF_PORT)]
    program = [*PYTHON, "-m", "fabtests", "perf", "write_bw"]
    with there.running(*program, *options) as server:
        there.wait_for_listener(PERF_PORT)
        before = sent_packets()
        run([*program, *options, "--out_json", "--out_json_file", str(report), "there"], seconds=SECONDS)
        assert sent_packets() - before >= writes * size // MTU
        assert server.wait(timeout=SECONDS) == 0
    told = json.loads(report.read_text())
    print(told)
    assert told["results"]["n_iterations"] == writes
    assert told["results"]["BW_average"] > 0
