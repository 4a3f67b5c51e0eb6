# SPDX-License-Identifier: BSD-3-Clause
"""Address vectors: insert, look up, remove; good, bad and mixed addresses."""

import pickle

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program


def _fail_unless(condition: bool, what: str) -> None:
    if not condition:
        raise Failed(what)


def _refused(vector: ofipy.AddressVector, address: object) -> bool:
    try:
        vector.insert(address)  # type: ignore[arg-type]
    except (ofipy.FabricError, ValueError, TypeError):
        return True
    return False


def open_and_close(bench: Bench) -> None:
    """Vectors come and go."""
    with bench.domain() as domain:
        for _ in range(16):
            domain.av().close()


def insert_one(bench: Bench) -> None:
    """A good address."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        peer = endpoint.insert(endpoint.address)
        _fail_unless(
            endpoint.av.address(peer).raw(endpoint.provider) == endpoint.address.raw(endpoint.provider),
            "another address",
        )


def insert_twice(bench: Bench) -> None:
    """The same address again keeps its index."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        _fail_unless(endpoint.insert(endpoint.address) == endpoint.insert(endpoint.address), "another index")


def insert_forms(bench: Bench) -> None:
    """As an object, its bytes, its text, what the provider calls it, and pickled."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        address = endpoint.address
        forms = (
            address,
            bytes(address),
            str(address),
            address.raw(endpoint.provider),
            pickle.loads(pickle.dumps(address)),
        )
        _fail_unless(len({int(endpoint.insert(form)) for form in forms}) == 1, "several indices")


def insert_several(bench: Bench) -> None:
    """Different addresses have different indices."""
    with bench.domain() as domain:
        endpoints = [domain.endpoint().enable() for _ in range(4)]
        peers = {int(endpoints[0].insert(each.address)) for each in endpoints}
        _fail_unless(len(peers) == len(endpoints), f"{len(peers)} indices")


def insert_bad(bench: Bench) -> None:
    """What is no address is refused, and nothing is entered."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        before = len(endpoint.av)
        for bad in (b"", b"\xff" * 3, "no address at all", 17):
            _fail_unless(_refused(endpoint.av, bad), f"{bad!r} was taken")
        _fail_unless(len(endpoint.av) == before, "something was entered")


def insert_good_after_bad(bench: Bench) -> None:
    """A refused address does no harm."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        _fail_unless(_refused(endpoint.av, b"\xff"), "a byte was taken")
        endpoint.insert(endpoint.address)


def look_up(bench: Bench) -> None:
    """An address is found, one that is not there is not."""
    with (
        bench.domain() as domain,
        domain.endpoint().enable() as endpoint,
        domain.endpoint().enable() as other,
    ):
        peer = endpoint.insert(endpoint.address)
        _fail_unless(endpoint.av.find(endpoint.address) == peer, "not found")
        _fail_unless(endpoint.av.find(other.address) is None, "found what is not there")


def remove_one(bench: Bench) -> None:
    """A removed peer is unknown, and may be entered again."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        peer = endpoint.insert(endpoint.address)
        endpoint.av.remove(peer)
        _fail_unless(endpoint.av.find(endpoint.address) is None, "still there")
        endpoint.insert(endpoint.address)


def remove_twice(bench: Bench) -> None:
    """The second time there is nothing to remove."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        peer = endpoint.insert(endpoint.address)
        endpoint.av.remove(peer)
        try:
            endpoint.av.remove(peer)
        except ofipy.FabricError:
            return
        raise Failed("a peer was removed twice")


def iterate(bench: Bench) -> None:
    """A vector lists its peers."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        peer = endpoint.insert(endpoint.address)
        _fail_unless(list(endpoint.av) == [peer] and len(endpoint.av) == 1, "another list")


CASES = (
    open_and_close,
    insert_one,
    insert_twice,
    insert_forms,
    insert_several,
    insert_bad,
    insert_good_after_bad,
    look_up,
    remove_one,
    remove_twice,
    iterate,
)


def cases(bench: Bench) -> None:
    """All of them."""
    for case in CASES:
        bench.case(case)


PROGRAM = Program(summary="Address vectors.", cases=cases)
