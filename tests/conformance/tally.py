# SPDX-License-Identifier: BSD-3-Clause
"""What a run of the suite has tested, over all processes that ran parts of it, and what is wrong with that."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from protection import requires_encryption
from sides import Target

import ofipy

# Every test of two sides uses these; that a transport leaves the machine is for tests on several.
IN_EVERY_TEST = ofipy.Cap.MSG | ofipy.Cap.TAGGED | ofipy.Cap.LOCAL_COMM | ofipy.Cap.REMOTE_COMM

# Where an info declares orders, by what stands before "order_" in the name of a need.
ORDERS = {"": "msg_order", "rma_": "rma_order", "atomic_": "atomic_order"}


@dataclass
class Tally:
    """Tests by target, and what was seen as they ran."""

    kept: dict[Target, Counter[str]] = field(default_factory=dict)
    """How many tests each target has, and how many of them have each need."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many tests a target does not have, by the reason."""
    whole: bool = False
    """Every file of the suite was collected."""
    ways: dict[Target, Counter[str]] = field(default_factory=dict)
    """How often pairs of endpoints met by which way."""
    protection: Counter[str] = field(default_factory=Counter)
    """How many peers over tcp were encrypted, and how many plain; counted where encryption is required."""
    hooked_operations: int = 0
    """Operations that hooks have seen."""

    def add(self, other: "Tally") -> None:
        """Take in another process's: each of them has collected everything, and run a part."""
        self.kept, self.left_out, self.whole = other.kept, other.left_out, other.whole
        for target, ways in other.ways.items():
            self.went(target, ways)
        self.protection += other.protection
        self.hooked_operations += other.hooked_operations

    def went(self, target: Target, ways: Counter[str]) -> None:
        """Count pairs of endpoints by the way that they took."""
        self.ways.setdefault(target, Counter()).update(ways)

    def lines(self) -> Iterator[str]:
        """The report of what was tested, and of what was not."""
        for target, count in self.kept.items():
            needs = ", ".join(f"{name} {number}" for name, number in sorted(count.items()) if name)
            yield f"{target}: {count['']} tests; of them need {needs or 'nothing'}"
        for target, ways in self.ways.items():
            if ways:
                yield f"{target}: pairs by way: {dict(sorted(ways.items()))}"
        if self.protection:
            yield f"peers over tcp, where encryption is required: {dict(sorted(self.protection.items()))}"
        for reason, number in sorted(self.left_out.items()):
            yield f"left out: {number} tests, since {reason}"

    def complaints(self) -> Iterator[str]:
        """Why the suite has tested something else than it says."""
        for target, ways in self.ways.items():
            if strayed(target, ways):
                yield f"{target} went {ways}"
        over_tcp = any(target.provider == "tcp" for target in self.kept)
        if requires_encryption() and over_tcp and not self.protection["encrypted"]:
            yield "OFIPY_ENCRYPTION=required, and no peer over tcp was seen encrypted"
        asked = os.environ.get("OFIPY_HOOKS")
        if asked and not self.hooked_operations:
            yield f"OFIPY_HOOKS={asked!r}, and the hooks saw no operation"
        for target, count in self.kept.items():
            if self.whole and target.kind == "rdm" and target.other is None:
                for name in declared(target.info()):
                    if not count[name.lower()]:
                        yield f"{target} declares {name}, and no test needs it"


def declared(info: ofipy.Info) -> Iterator[str]:
    """Names of the capabilities and orders that a table declares, as tests need them."""
    for cap in info.caps & ~IN_EVERY_TEST:
        yield str(cap.name)
    for before, field_name in ORDERS.items():
        if before == "rma_" and not info.caps & ofipy.Cap.RMA:
            continue
        if before == "atomic_" and not info.caps & ofipy.Cap.ATOMIC:
            continue
        for order in getattr(info, field_name):
            if order is ofipy.Order.SAS or info.caps & ofipy.Cap.RMA:
                yield f"{before}order_{str(order.name).lower()}"


def strayed(target: Target, ways: Counter[str]) -> bool:
    """Whether domains met by another way than the one that is to be tested."""
    if not target.over_several_ways:
        return False
    return "shm" in ways if target.remote else bool(ways) and "shm" not in ways
