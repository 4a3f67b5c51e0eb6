# SPDX-License-Identifier: BSD-3-Clause
"""Registration: sizes, rights, keys, parts, and what happens to memory that is in use."""

import numpy as np

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program

RIGHTS = (
    ofipy.Access.LOCAL,
    ofipy.Access.REMOTE_READ,
    ofipy.Access.REMOTE_WRITE,
    ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE | ofipy.Access.LOCAL,
)


def register(bench: Bench) -> None:
    """Every size and right."""
    bench.needs("rma")
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        for size in (1, 7, 64, 4096, 100_000, 1 << 20):
            for rights in RIGHTS:
                endpoint.register(np.zeros(size, np.uint8), access=rights).close()


def several_of_one_buffer(bench: Bench) -> None:
    """Regions may overlap."""
    bench.needs("rma")
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        memory = np.zeros(4096, np.uint8)
        regions = [endpoint.register(memory[start:], access=RIGHTS[-1]) for start in range(0, 2048, 512)]
        if len({each.key for each in regions}) != len(regions):
            raise Failed("regions share a key")


def wanted_key(bench: Bench) -> None:
    """A key that the program asks for."""
    bench.needs("rma")
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        try:
            region = endpoint.register(np.zeros(64, np.uint8), access=RIGHTS[-1], key=0xC0DE)
        except ofipy.NotSupported:
            return
        if region.key != 0xC0DE:
            raise Failed(f"key {region.key:#x}")


def parts(bench: Bench) -> None:
    """A part of a region has its own length and the same memory."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        region = endpoint.register(np.arange(64, dtype=np.uint8))
        part = region[16:32]
        if len(part) != 16 or part.array[0] != 16:
            raise Failed(f"{part}")


def read_only_memory(bench: Bench) -> None:
    """Memory that may not be written is registered for sending only."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        endpoint.register(b"constant", access="send").close()
        try:
            endpoint.register(b"constant", access="recv")
        except (ofipy.FabricError, ValueError, TypeError):
            return
        raise Failed("constant memory was registered for receives")


def cases(bench: Bench) -> None:
    """All of them."""
    for case in (register, several_of_one_buffer, wanted_key, parts, read_only_memory):
        bench.case(case)


PROGRAM = Program(summary="Registration of memory.", cases=cases)
