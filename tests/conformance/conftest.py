# SPDX-License-Identifier: BSD-3-Clause
"""One suite over every provider: ``pytest tests/conformance --provider shm``.

A test that needs something says so: ``@pytest.mark.needs("tagged")``. Where a provider's own table lacks it, the
test is left out for that provider, and the end of the report says why. Where the table declares a capability that no
test names, the run of the whole suite fails; the same of orders (``order_saw``).

``--provider tcp,ofi:tcp`` runs a pair: the first side, or the first endpoint, is of the one provider, the second of the
other, which must speak the same wire. It takes the tests that have a second side and needs that both meet.

``--provider link`` is one endpoint over shared memory and a network, both sides on this host; with ``--provider
link-remote`` every domain is on a host of its own, and the run fails where any two of them share memory all the same.
"""

import pickle
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy._base.binding import ffi, lib

sys.path.insert(0, str(Path(__file__).parent))
from connected import client, keep_endpoints, listener, open_domain  # noqa: F401 (fixtures)
from deviations import deviation_of
from hosts import part_hosts, ways_between_hosts
from protection import check_protection, requires_encryption, watch_endpoints
from sides import (
    REMOTE,
    Sides,
    Target,
    make_sides,
    take_each_other_s_addresses,
)
from tally import ORDERS, Tally

DEFAULT_PROVIDERS = ("shm", "tcp", "fake")
IN_PROCESS = frozenset({"fake", "rdmfake"})

# What the tests beyond 4 GiB take.
LARGE_BYTES = 10 << 30

_tally = pytest.StashKey[Tally]()
_targets = pytest.StashKey[list[Target]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--provider",
        action="append",
        default=[],
        metavar="NAME",
        help="provider to test, a pair of them (A,B), or link-remote, which is link between hosts; may be repeated "
        "(default: shm, tcp and fake, as far as they are installed)",
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
        "'descriptor', 'processes', 'default', 'connections', 'rdm', 'core_matching', 'write_data', 'refusals', "
        "'lone_refusals', 'groups', "
        "'neighbours', 'absent_peers', 'keys', 'device_keys', 'refusing_device', 'datagrams', of the provider; "
        "with of='second' of that side of a pair only",
    )
    config.addinivalue_line(
        "markers", "connected: tests of two sides run over connected endpoints (type msg) too"
    )
    config.addinivalue_line(
        "markers",
        "datagrams: tests for endpoints of type dgram too, whose messages are short and may be lost",
    )
    config.addinivalue_line(
        "markers", "untagged: tests without tags of their own, for transports too that have none"
    )
    config.addinivalue_line("markers", "pairs: tests without `sides` whose endpoints may be of two providers")
    config.stash[_tally] = Tally()


def targets(config: pytest.Config) -> list[Target]:
    """What the options ask for."""
    asked = config.getoption("--provider")
    pairs = [name for name in asked if "," in name]
    alone = [name for name in asked if "," not in name]
    return [pair_of(*name.split(",", 1)) for name in pairs] + (
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
    remote = [name.removesuffix(REMOTE) for name in asked if name.endswith(REMOTE)]
    if remote:
        here = [name for name in asked if not name.endswith(REMOTE)]
        return (targets_alone(here) if here else []) + [
            replace(target, remote=True) for target in targets_alone(remote)
        ]
    result = []
    for report in ofipy.getinfo(explain=True, provider=asked or None):
        if report.provider not in (asked or DEFAULT_PROVIDERS):
            continue
        if asked and not report.infos:
            raise pytest.UsageError(f"provider {report.provider} is not available: {report.reason}")
        reliable = [info for info in report.infos if info.ep_type is ofipy.EndpointType.RDM]
        connected = [info for info in report.infos if info.ep_type is ofipy.EndpointType.MSG]
        kinds = {(info.offloads_matching, info.msg_order): info for info in reversed(reliable or connected)}
        result += [
            Target(info.provider, info.domain, in_process(info.provider), "rdm" if reliable else "msg")
            for info in kinds.values()
        ]
        datagrams = [info for info in report.infos if info.ep_type is ofipy.EndpointType.DGRAM]
        result += [Target(info.provider, info.domain, False, "dgram") for info in datagrams[:1]]
    return result


def makes_device_keys(info: ofipy.Info) -> bool:
    """Whether a device moves bytes by keys that it has made, under several ways."""
    return "ofipy-rdm" in info.protocol and "packets" not in info.domain.split("+")


def in_process(provider: str) -> bool:
    """Whether its endpoints, or those that it is made of, meet within one process only."""
    return not IN_PROCESS.isdisjoint(re.split("[:+]", provider))


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
    if need == "groups":
        fit = info.caps & ofipy.Cap.DIRECTED_RECV and info.msg_order & ofipy.Order.SAS
        return None if fit and info.cq_data_size >= 8 else "has no groups"
    if need == "neighbours":
        return None if target.over_several_ways and not target.remote else "has one way to all of its peers"
    if need == "absent_peers":
        foreign = target.provider.partition(":")[0] == "ofi"
        return "leaves it to its library how long a peer is asked for" if foreign else None
    if need == "keys":
        return None if target.network == "tcp" else "proves no keys"
    if need == "device_keys":
        return None if makes_device_keys(info) else "has no device that makes keys of its own"
    if need == "refusing_device":
        fake = target.network == "rdmfake" and makes_device_keys(info)
        return None if fake else "has no setting by which a device refuses memory"
    if need == "default":
        first = ofipy.getinfo(provider=target.provider)[0]
        return None if first.domain == target.domain else "is not what open() takes"
    if need == "write_data":
        takes_receives = info.offloads_matching and info.ep_type is ofipy.EndpointType.MSG
        return "takes a posted receive for data that come with a write" if takes_receives else None
    if need == "refusals":
        ends = info.provider == "verbs" and info.ep_type is ofipy.EndpointType.MSG
        return "ends a connection with the first access that is refused" if ends else None
    if need == "datagrams":
        return None if target.kind == "dgram" else "is reliable"
    if need == "lone_refusals":
        ends = info.provider == "verbs"
        return "ends what else is under way with the first access that is refused" if ends else None
    if need == "rdm":
        found = ofipy.getinfo(provider=target.provider, domain=target.domain, ep_type="rdm")
        return None if found else "has no endpoints of type rdm"
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
    if _targets not in metafunc.config.stash:
        metafunc.config.stash[_targets] = targets(metafunc.config)
    every = list(metafunc.config.stash[_targets])
    if "sides" in metafunc.fixturenames and metafunc.definition.get_closest_marker("connected"):
        every += [other for target in every if target.kind == "rdm" and (other := target.connected())]
    metafunc.parametrize("target", every, ids=str, scope="session")


@cache
def libfabric_version(target: Target) -> tuple[int, int]:
    """Version of the libfabric behind a target, (0, 0) where there is none."""
    record = ffi.from_buffer("struct ofp_info *", target.info()._record)
    return record.provider_data[0] >> 16, record.provider_data[0] & 0xFFFF


def expect_deviation(item: pytest.Item, target: Target) -> None:
    """Mark a test that libfabric is known to fail."""
    theirs = [side for number in (0, 1) if (side := target.side(number)).provider.startswith("ofi:")]
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
    connects = "connections" in needs or (two_sides and item.get_closest_marker("connected"))
    if target.kind == "msg" and not connects:
        return f"{target} has connected endpoints only"
    if target.kind == "dgram" and not item.get_closest_marker("datagrams"):
        return f"{target} has datagrams only"
    if "connections" in needs:
        target = target.connected() or target
    if not target.info().caps & ofipy.Cap.TAGGED and not item.get_closest_marker("untagged"):
        return f"{target} has no tags"
    if target.other is not None and not two_sides:
        return f"{target} is for tests with a second side"
    reasons = (lacks(target, need, config, of) for need, of in needs.items())
    return next((f"{target} {reason}" for reason in reasons if reason), None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept, left_out, tally = [], [], config.stash[_tally]
    for item in items:
        target, needs = target_and_needs(item)
        reason = None
        if target is not None:
            reason = left_out_since(item, target, needs, config)
            if reason is None:
                tally.kept.setdefault(target, Counter()).update(["", *set(needs)])
        if reason is None:
            kept.append(item)
            if target is not None:
                expect_deviation(item, target)
        else:
            left_out.append(item)
            tally.left_out[reason] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    files = {item.path for item in items}
    tally.whole = files.issuperset(Path(__file__).parent.glob("test_*.py"))
    items[:] = kept


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in config.stash[_tally].lines():
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def _all_sides(request: pytest.FixtureRequest) -> Iterator[dict[Target, Sides]]:
    made: dict[Target, Sides] = {}
    yield made
    for sides in made.values():
        sides.close()
    tally = request.config.stash[_tally]
    for target, sides in made.items():
        tally.went(target, sides.ways)
        tally.protection += sides.protection
    tally.hooked_operations += sum(sides.hooked_operations for sides in made.values())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take in what a process of pytest-xdist has done; one that died has left nothing."""
    output = getattr(node, "workeroutput", {})
    if "tally" in output:
        node.config.stash[_tally].add(pickle.loads(output["tally"]))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A suite that tests something else than it says has failed."""
    tally = session.config.stash[_tally]
    tally.hooked_operations += lib.ofp_hooks_operations()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tally"] = pickle.dumps(tally)
    elif exitstatus == 0:
        for complaint in tally.complaints():
            session.config.pluginmanager.get_plugin("terminalreporter").write_line(complaint, red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _one_wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pair each side takes the other's addresses; sides of several hosts have a network only."""
    target = request.node.callspec.params.get("target") if hasattr(request.node, "callspec") else None
    if target is None:
        return
    take_each_other_s_addresses(target, monkeypatch.setattr)
    if target.remote:
        for name in ("OFIPY_HOST_ID", "OFIPY_INTERFACE"):
            monkeypatch.setenv(name, "")
        part_hosts(target, monkeypatch.setattr)


@pytest.fixture(autouse=True)
def _peers_are_encrypted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that had a plain peer over tcp where ``OFIPY_ENCRYPTION=required``; `Sides` tells of its own."""
    if not requires_encryption():
        yield
        return
    found = watch_endpoints(monkeypatch.setattr)
    yield
    request.config.stash[_tally].protection += found
    check_protection(found)


@pytest.fixture
def sides(target: Target, _all_sides: dict[Target, Sides]) -> Sides:
    """Both sides of a test."""
    if target not in _all_sides:
        _all_sides[target] = make_sides(target)
    return _all_sides[target]


@pytest.fixture
def open_endpoint(
    target: Target, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Callable[..., ofipy.Endpoint]]:
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
    ways = ways_between_hosts(target, made)
    request.config.stash[_tally].went(target, ways)
    for endpoint in made:
        endpoint.fabric.close(linger=0)


@pytest.fixture
def ep(open_endpoint: Callable[..., ofipy.Endpoint]) -> ofipy.Endpoint:
    """One endpoint."""
    return open_endpoint()


@pytest.fixture
def me(ep: ofipy.Endpoint) -> ofipy.Peer:
    """The endpoint `ep` as a peer of itself."""
    return ep.insert(ep.address)
