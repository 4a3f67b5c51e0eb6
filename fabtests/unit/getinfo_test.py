# SPDX-License-Identifier: BSD-3-Clause
"""Discovery: what is asked for is what comes, and what cannot be had is told."""

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program
from ofipy import Cap


def no_hints(_bench: Bench) -> None:
    """Without a wish there is something."""
    if not ofipy.getinfo():
        raise Failed("nothing is offered")


def by_provider(bench: Bench) -> None:
    """Only what was asked for."""
    others = {info.provider for info in ofipy.getinfo(provider=bench.info.provider)} - {bench.info.provider}
    if others:
        raise Failed(f"{others} came, too")


def by_domain(bench: Bench) -> None:
    """One device."""
    found = ofipy.getinfo(provider=bench.info.provider, domain=bench.info.domain)
    if not found or any(info.domain != bench.info.domain for info in found):
        raise Failed(f"{[info.domain for info in found]}")


def by_type(bench: Bench) -> None:
    """One type of endpoint, also where it is none."""
    for kind in ofipy.EndpointType:
        if any(
            info.ep_type is not kind for info in ofipy.getinfo(provider=bench.info.provider, ep_type=kind)
        ):
            raise Failed(f"another type than {kind}")


def by_capability(bench: Bench) -> None:
    """Each capability alone, and all that are declared together."""
    for cap in Cap:
        for info in ofipy.getinfo(provider=bench.info.provider, caps=cap):
            if cap not in info.caps:
                raise Failed(f"{info.domain} came without {cap}")
    if not ofipy.getinfo(provider=bench.info.provider, caps=bench.info.caps):
        raise Failed("what was declared cannot be had")


def emulated(bench: Bench) -> None:
    """What the core adds is among the capabilities."""
    if bench.info.emulated_caps & ~bench.info.caps:
        raise Failed(f"{bench.info.emulated_caps & ~bench.info.caps} is added, and not declared")


def reasons(bench: Bench) -> None:
    """Every provider that offers nothing says why."""
    for each in ofipy.getinfo(explain=True):
        if not each.infos and not each.reason:
            raise Failed(f"{each.provider} does not say why")


def unknown(_bench: Bench) -> None:
    """A provider that does not exist is an error with the names that do."""
    try:
        ofipy.getinfo(provider="nonesuch")
    except ofipy.FabricError as error:
        if "nonesuch" not in str(error):
            raise Failed(str(error)) from None
        return
    raise Failed("nobody said anything")


def limits(bench: Bench) -> None:
    """Limits are sizes that can be used."""
    info = bench.info
    if not (info.max_msg_size > 0 and info.tx_size > 0 and info.rx_size > 0 and info.inject_size >= 0):
        raise Failed(f"{info}")


def ordered(bench: Bench) -> None:
    """The same question has the same answer."""
    first, second = (ofipy.getinfo(provider=bench.info.provider) for _ in range(2))
    if first != second:
        raise Failed("another order")


def cases(bench: Bench) -> None:
    """All of them."""
    for case in (
        no_hints,
        by_provider,
        by_domain,
        by_type,
        by_capability,
        emulated,
        reasons,
        unknown,
        limits,
        ordered,
    ):
        bench.case(case)


PROGRAM = Program(summary="Discovery.", cases=cases)
