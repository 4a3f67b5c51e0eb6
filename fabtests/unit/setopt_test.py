# SPDX-License-Identifier: BSD-3-Clause
"""Options of an endpoint: read, set, refused."""

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program

READABLE = ("max_msg_size", "inject_size", "tx_size", "rx_size")


def read(bench: Bench) -> None:
    """Every option has a value."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        for name in READABLE:
            if endpoint.option(name) < 0:
                raise Failed(name)


def set_and_read(bench: Bench) -> None:
    """What was set is what is read."""
    bench.needs("multi_recv")
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        endpoint.set_option("min_multi_recv", 128)
        if endpoint.option("min_multi_recv") != 128:
            raise Failed(f"{endpoint.option('min_multi_recv')}")


def unknown(bench: Bench) -> None:
    """What does not exist is refused."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        try:
            endpoint.option("nonesuch")
        except ofipy.FabricError:
            return
        raise Failed("there is an option of that name")


def cases(bench: Bench) -> None:
    """All of them."""
    for case in (read, set_and_read, unknown):
        bench.case(case)


PROGRAM = Program(summary="Options of endpoints.", cases=cases)
