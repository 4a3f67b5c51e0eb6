# SPDX-License-Identifier: BSD-3-Clause
"""Ours against libfabric's fabtests over tcp, both roles, where ``FABTESTS_BIN`` names the folder of the C programs.

Debian has no package of them: build libfabric and its fabtests 2.5.1 from their sources. Run these tests one after the
other (``-n 0``): several of the C programs meet at port 3000.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ports import free_port

FOLDER = os.environ.get("FABTESTS_BIN")
TIMEOUT = 60
READY = 1.5  # seconds in which a C server opens its endpoint: it does not say when

# Command lines for both sides. -b and -E get a port of their own.
RUNS = """
rdm_pingpong -I 100 -v
rdm_pingpong -I 100 -U -v
rdm_pingpong -I 100 -r
rdm_pingpong -I 100 -b
rdm_pingpong -I 100 -E
rdm_tagged_pingpong -I 100 -v
rdm_tagged_pingpong -I 100 -v -b
rdm_cntr_pingpong -I 100 -v
msg_pingpong -I 100 -v
rdm_bw -I 100 -v
rdm_tagged_bw -I 100 -v
msg_bw -I 100 -v
rdm_bw_mt -n 2 -I 50 -b
rma_bw -I 100 -o write -v
rma_bw -I 100 -o read -v
rma_bw -I 100 -o writedata -v
rma_bw -I 100 -e msg -o write
rma_pingpong -I 100 -o write
rma_pingpong -I 100 -o writedata -v
rma_tx_completion -I 100 -o write
rma_tx_completion -I 100 -o writedata
rdm
rdm -U
msg
cq_data -o senddata
cq_data -o writedata
cq_data -e msg -o senddata
cq_data -e msg -o writedata
msg_epoll
msg_sockets -s 127.0.0.1
inject_test -A inject -v
inject_test -A inj_complete -v
inject_test -e msg -A inject -v
recv_cancel -V
multi_recv -I 50 -v -b
unexpected_msg -I 10 -v -e rdm
rdm_tagged_peek
av_xfer -b
resmgmt_test
unmap_mem -I 20
multi_ep -e rdm -v -E
multi_ep -e rdm -v -A -Q -E
multi_ep -e msg -v
multi_ep -e msg -v -A -Q
shared_ctx --no-tx-shared-ctx --no-rx-shared-ctx
shared_ctx -e msg --no-tx-shared-ctx
flood
flood -b
flood -e msg
rdm_multi_client -C 3 -I 5
rdm_multi_client -C 3 -I 5 -b
cm_data
""".strip().splitlines()


def commands(run: str) -> tuple[list[str], list[str]]:
    """Ours and the C program's, without their roles."""
    beside = free_port()
    name, *options = (f"{each}={beside}" if each in ("-b", "-E") else each for each in run.split())
    options = ["-p", "tcp", *options]
    assert FOLDER is not None
    return [sys.executable, "-P", "-m", "fabtests", name, *options], [
        str(Path(FOLDER) / f"fi_{name}"),
        *options,
    ]


@pytest.mark.skipif(FOLDER is None, reason="FABTESTS_BIN does not name libfabric's fabtests")
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("c_is", ["server", "client"])
def test_both_roles(run: str, c_is: str) -> None:
    port = free_port()
    ours, theirs = commands(run)
    server, client = (
        (theirs, ours) if c_is == "server" else ([*ours, "--announce", "--oob-port", "3000"], theirs)
    )
    with subprocess.Popen(
        [*server, "-s", "127.0.0.1", "-B", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as serving:
        try:
            assert serving.stdout is not None
            if c_is == "server":
                time.sleep(READY)
            else:
                while "fabtests ready" not in (line := serving.stdout.readline()):
                    assert line
            result = subprocess.run(
                [*client, "-P", str(port), "127.0.0.1"],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            assert result.returncode == 0, result.stdout + result.stderr
            assert serving.wait(TIMEOUT) == 0, serving.stdout.read()
        finally:
            serving.kill()
