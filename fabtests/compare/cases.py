# SPDX-License-Identifier: BSD-3-Clause
"""The cases by name."""

from fabtests.compare.atomics import AtomicLatency
from fabtests.compare.awaiting import Await
from fabtests.compare.case import Case
from fabtests.compare.collectives import Collectives
from fabtests.compare.contended import ArrayContended
from fabtests.compare.depth import MatchDepth
from fabtests.compare.encrypted import TlsBandwidth, TlsLatency
from fabtests.compare.executor import Executors
from fabtests.compare.fan_in import FanIn
from fabtests.compare.latency import Gil, ShmLatency, TcpLatency
from fabtests.compare.link import LinkBandwidth, LinkLatency
from fabtests.compare.rma import ShmRma
from fabtests.compare.rma_rate import RmaRate
from fabtests.compare.shm_rate import ShmRate
from fabtests.compare.start import Start
from fabtests.compare.strided import Strided
from fabtests.compare.threads import Threads
from fabtests.compare.verbs import VerbsBandwidth, VerbsLatency
from fabtests.compare.windows import ShmBandwidth, TcpBandwidth, TcpRate

__all__ = ["CASES"]

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        ShmLatency(),
        ShmBandwidth(),
        ArrayContended(),
        Strided(),
        ShmRma(),
        ShmRate(),
        RmaRate(),
        AtomicLatency(),
        MatchDepth(),
        TcpLatency(),
        TcpRate(),
        TcpBandwidth(),
        TlsLatency(),
        TlsBandwidth(),
        LinkLatency(),
        LinkBandwidth(),
        VerbsLatency(),
        VerbsBandwidth(),
        Await(),
        Threads(),
        Start(),
        FanIn(),
        Executors(),
        Collectives(),
        Gil(),
    )
}
