# SPDX-License-Identifier: BSD-3-Clause
"""One suite over every provider: ``pytest tests/conformance --provider shm``.

A test that needs something says so: ``@pytest.mark.needs("tagged")``. Where a provider's own table lacks it, the
test is left out for that provider, and the end of the report says why. Where the table declares a capability that no
test names, the run of the whole suite fails; the same of orders (``order_saw``).

``--provider tcp+ofi:tcp`` runs a pair: the first side, or the first endpoint, is of the one provider, the second of the
other, which must speak the same wire. It takes the tests that have a second side and needs that both meet.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy._base.binding import ffi, lib

sys.path.insert(0, str(Path(__file__).parent))
from deviations import deviation_of
from sides import Sides, Target, make_sides, take_each_other_s_addresses

DEFAULT_PROVIDERS = ("shm", "tcp", "fake")
IN_PROCESS = frozenset({"fake"})

# Every test of two sides uses these; that a transport leaves the machine is for tests on several.
IN_EVERY_TEST = ofipy.Cap.MSG | ofipy.Cap.TAGGED | ofipy.Cap.LOCAL_COMM | ofipy.Cap.REMOTE_COMM

# What the tests beyond 4 GiB take.
LARGE_BYTES = 10 << 30

# Where an info declares orders, by what stands before "order_" in the name of a need.
ORDERS = {"": "msg_order", "rma_": "rma_order", "atomic_": "atomic_order"}

_left_out = pytest.StashKey[Counter[str]]()
_kept = pytest.StashKey[dict[Target, Counter[str]]]()
_hooked = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--provider",
        action="append",
        default=[],
        metavar="NAME",
        help="provider to test, or a pair of them (A+B); may be repeated (default: shm, tcp and fake, as far as they "
        "are installed)",
    )
    parser.addoption(
        "--large",
        action="store_true",
        help=f"test beyond 4 GiB too, on a machine with {LARGE_BYTES >> 30} GiB of free memory",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "needs(*names): capabilities, orders ('order_saw', 'rma_order_waw', 'atomic_order_raw'), or 'large', "
        "'descriptor', 'processes', 'default', 'connections', 'core_matching', of the provider; with of='second' of "
        "that side of a pair only",
    )
    config.addinivalue_line(
        "markers", "connected: tests of two sides run over connected endpoints (type msg) too"
    )
    config.addinivalue_line("markers", "pairs: tests without `sides` whose endpoints may be of two providers")
    config.stash[_left_out] = Counter()
    config.stash[_kept] = {}


def targets(config: pytest.Config) -> list[Target]:
    """What the options ask for."""
    asked = config.getoption("--provider")
    pairs = [name for name in asked if "+" in name]
    alone = [name for name in asked if "+" not in name]
    return [pair_of(*name.split("+", 1)) for name in pairs] + (
        targets_alone(alone) if alone or not pairs else []
    )


def pair_of(first: str, second: str) -> Target:
    """The first device that both have, with the same kind of addresses."""
    infos = [ofipy.getinfo(provider=name, ep_type="rdm") for name in (first, second)]
    for one in infos[0]:
        for other in infos[1]:
            if (one.domain, one.address_format) == (other.domain, other.address_format):
                return Target(first, one.domain, False, other=Target(second, other.domain, False))
    raise pytest.UsageError(f"providers {first} and {second} have no device in common")


def targets_alone(asked: list[str]) -> list[Target]:
    """Each kind of matching, and each promise of order, of each provider once."""
    result = []
    for report in ofipy.getinfo(explain=True, provider=asked or None):
        if report.provider not in (asked or DEFAULT_PROVIDERS):
            continue
        if asked and not report.infos:
            raise pytest.UsageError(f"provider {report.provider} is not available: {report.reason}")
        datagrams = [info for info in report.infos if info.ep_type is ofipy.EndpointType.RDM]
        kinds = {(info.offloads_matching, info.msg_order): info for info in reversed(datagrams)}
        result += [Target(info.provider, info.domain, info.provider in IN_PROCESS) for info in kinds.values()]
    return result


def lacks_large(info: ofipy.Info, config: pytest.Config) -> str | None:
    """Why a provider, or this machine, cannot be tested beyond 4 GiB."""
    if min(info.max_msg_size, info.max_rma_size or info.max_msg_size) <= 2**33:
        return "moves no more than its max_msg_size at once"
    if not config.getoption("--large"):
        return "is tested beyond 4 GiB with --large only"
    free = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    enough = free is not None and int(free[1]) << 10 >= LARGE_BYTES
    return None if enough else f"is tested beyond 4 GiB where {LARGE_BYTES >> 30} GiB of memory are free"


def lacks(target: Target, need: str, config: pytest.Config, of: tuple[int, ...] = (0, 1)) -> str | None:
    """Why a provider cannot run a test with this need, by its own table; of a pair, why these sides cannot."""
    if target.other is not None:
        return next(filter(None, (lacks(target.side(number), need, config) for number in of)), None)
    info = target.info()
    if need == "large":
        return lacks_large(info, config)
    if need == "core_matching":
        return "matches messages itself" if info.offloads_matching else None
    if need == "default":
        first = ofipy.getinfo(provider=target.provider)[0]
        return None if first.domain == target.domain else "is not what open() takes"
    if need == "connections":
        return None if target.connected() else "has no endpoints of type msg"
    if need == "descriptor":
        return None if info.wait_fd else "has no descriptor that tells of work"
    if need == "processes":
        return "lives in one process" if target.in_process else None
    before, is_order, name = need.rpartition("order_")
    if is_order:
        order = ofipy.Order[name.upper()]
        return None if getattr(info, ORDERS[before]) & order else f"does not declare {before}{order.name}"
    return None if info.caps & ofipy.Cap[need.upper()] else f"lacks {need}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" not in metafunc.fixturenames:
        return
    every = targets(metafunc.config)
    if "sides" in metafunc.fixturenames and metafunc.definition.get_closest_marker("connected"):
        every += [other for target in every if (other := target.connected())]
    metafunc.parametrize("target", every, ids=str, scope="session")


@cache
def libfabric_version(target: Target) -> tuple[int, int]:
    """Version of the libfabric behind a target, (0, 0) where there is none."""
    record = ffi.from_buffer("struct ofp_info *", target.info()._record)
    return record.provider_data[0] >> 16, record.provider_data[0] & 0xFFFF


def expect_deviation(item: pytest.Item, target: Target) -> None:
    """Mark a test that libfabric is known to fail."""
    theirs = [side for number in (0, 1) if ":" in (side := target.side(number)).provider]
    row = None
    if theirs:
        provider = target.provider if target.other is None else str(target)
        row = deviation_of(provider, libfabric_version(theirs[0]), item.path.name, item.name)
    if row is not None and row.run:
        item.add_marker(pytest.mark.xfail(reason=row.evidence, strict=True))
    elif row is not None:
        item.add_marker(pytest.mark.xfail(reason=row.evidence, run=False))


def target_and_needs(item: pytest.Item) -> tuple[Target | None, dict[str, tuple[int, ...]]]:
    """The provider that a test is for, and what it needs of which side."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None, {}
    return item.callspec.params.get("target"), {
        name: (1,) if marker.kwargs.get("of") == "second" else (0, 1)
        for marker in item.iter_markers("needs")
        for name in marker.args
    }


def left_out_since(
    item: pytest.Item, target: Target, needs: dict[str, tuple[int, ...]], config: pytest.Config
) -> str | None:
    """Why a test is not for a provider, if it is not."""
    two_sides = "sides" in getattr(item, "fixturenames", ()) or item.get_closest_marker("pairs")
    if target.other is not None and not two_sides:
        return f"{target} is for tests with a second side"
    reasons = (lacks(target, need, config, of) for need, of in needs.items())
    return next((f"{target} {reason}" for reason in reasons if reason), None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept, left_out, counts = [], [], config.stash[_kept]
    for item in items:
        target, needs = target_and_needs(item)
        reason = None
        if target is not None:
            reason = left_out_since(item, target, needs, config)
            if reason is None:
                counts.setdefault(target, Counter()).update(["", *set(needs)])
        if reason is None:
            kept.append(item)
            if target is not None:
                expect_deviation(item, target)
        else:
            left_out.append(item)
            config.stash[_left_out][reason] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    files = {item.path for item in items}
    if files.issuperset(Path(__file__).parent.glob("test_*.py")):
        check_capabilities(counts)
    items[:] = kept


def check_capabilities(counts: dict[Target, Counter[str]]) -> None:
    """Each capability and each order that a table declares has a test."""
    for target, count in counts.items():
        if target.connects or target.other is not None:
            continue
        for cap in target.info().caps & ~IN_EVERY_TEST:
            if not count[str(cap.name).lower()]:
                raise pytest.UsageError(f"{target} declares {cap.name}, and no test needs it")
        for name in declared_orders(target.info()):
            if not count[name]:
                raise pytest.UsageError(f"{target} declares {name}, and no test needs it")


def declared_orders(info: ofipy.Info) -> Iterator[str]:
    """Names of the orders that a table declares, as tests need them; those of operations that it has."""
    for before, field in ORDERS.items():
        if before == "rma_" and not info.caps & ofipy.Cap.RMA:
            continue
        if before == "atomic_" and not info.caps & ofipy.Cap.ATOMIC:
            continue
        for order in getattr(info, field):
            if order is ofipy.Order.SAS or info.caps & ofipy.Cap.RMA:
                yield f"{before}order_{str(order.name).lower()}"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for target, count in config.stash[_kept].items():
        needs = ", ".join(f"{name} {number}" for name, number in sorted(count.items()) if name)
        terminalreporter.write_line(f"{target}: {count['']} tests; of them need {needs or 'nothing'}")
    for reason, number in sorted(config.stash[_left_out].items()):
        terminalreporter.write_line(f"left out: {number} tests, since {reason}")


@pytest.fixture(scope="session")
def _all_sides(request: pytest.FixtureRequest) -> Iterator[dict[Target, Sides]]:
    made: dict[Target, Sides] = {}
    yield made
    for sides in made.values():
        sides.close()
    request.config.stash[_hooked] = sum(sides.hooked_operations for sides in made.values())


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Hooks that are asked for and see nothing are a suite that tests something else than it says."""
    asked, here = os.environ.get("OFIPY_HOOKS"), lib.ofp_hooks_operations()
    if asked and exitstatus == 0 and not here + session.config.stash.get(_hooked, 0):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line(f"OFIPY_HOOKS={asked!r}, and the hooks saw no operation", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _one_wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pair each side takes the other's addresses."""
    target = request.node.callspec.params.get("target") if hasattr(request.node, "callspec") else None
    if target is not None:
        take_each_other_s_addresses(target, monkeypatch.setattr)


@pytest.fixture
def sides(target: Target, _all_sides: dict[Target, Sides]) -> Sides:
    """Both sides of a test."""
    if target not in _all_sides:
        _all_sides[target] = make_sides(target)
    return _all_sides[target]


@pytest.fixture
def open_endpoint(target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ofipy.Endpoint]]:
    """Opens endpoints in this process, each in a domain of its own unless told which; closes them at the end.

    One thread drives several domains here, so each has a helper thread, unless a test asks for manual progress.
    Of a pair of providers the domains are of one and the other in turn.
    """
    made: list[ofipy.Endpoint] = []
    turns = cycle([target.side(0), target.side(1)])

    def make(domain: ofipy.Domain | None = None, **options: Any) -> ofipy.Endpoint:
        endpoint = (
            next(turns).open(**{"progress": "auto"} | options)
            if domain is None
            else domain.endpoint(**options).enable()
        )
        made.append(endpoint)
        return endpoint

    yield make
    for endpoint in made:
        endpoint.fabric.close()


@pytest.fixture
def ep(open_endpoint: Callable[..., ofipy.Endpoint]) -> ofipy.Endpoint:
    """One endpoint."""
    return open_endpoint()


@pytest.fixture
def me(ep: ofipy.Endpoint) -> ofipy.Peer:
    """The endpoint `ep` as a peer of itself."""
    return ep.insert(ep.address)
