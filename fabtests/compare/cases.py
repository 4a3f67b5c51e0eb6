# SPDX-License-Identifier: BSD-3-Clause
"""The cases by name."""

from fabtests.compare.case import Case
from fabtests.compare.depth import MatchDepth
from fabtests.compare.latency import Gil, ShmLatency, TcpLatency
from fabtests.compare.rma import ShmRma
from fabtests.compare.windows import ShmBandwidth, TcpBandwidth, TcpRate

__all__ = ["CASES"]

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        ShmLatency(),
        ShmBandwidth(),
        ShmRma(),
        MatchDepth(),
        TcpLatency(),
        TcpRate(),
        TcpBandwidth(),
        Gil(),
    )
}
