# SPDX-License-Identifier: BSD-3-Clause
"""The suite between two hosts, each a network namespace; entering one stands in for ssh."""

from pathlib import Path

import pytest
from hosts import Network
from test_jobs import stand_in

from fabtests.suite.hosts import Hosts
from fabtests.suite.pair import run_entry


@pytest.mark.parametrize(
    "entry",
    [
        "rdm_pingpong -I 5 -S 64 -v",
        "rdm_pingpong -I 5 -S 64 -b",
        "msg_bw -I 70 -S 64 -v",
        "rma_bw -I 5 -S 64 -v",
        "av_xfer",
    ],
)
def test_server_and_client_on_two_hosts(network: Network, tmp_path: Path, entry: str) -> None:
    wires = [network.wire(network.host()) for _ in range(2)]
    hosts = Hosts(
        server=wires[0].v4,
        client=wires[1].v4,
        server_address=wires[0].v4,
        client_address=wires[1].v4,
        shell=stand_in(tmp_path, wires),
    )
    outcome = run_entry(entry, "tcp", hosts=hosts, limit=60)
    assert outcome.result == "passed", outcome
