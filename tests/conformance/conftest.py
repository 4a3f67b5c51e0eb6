# SPDX-License-Identifier: BSD-3-Clause
"""One suite over every provider: ``pytest tests/conformance --provider shm``.

A test that needs something says so: ``@pytest.mark.needs("tagged")``. Where a provider's own table lacks it, the
test is left out for that provider, and the end of the report says why.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
from sides import Sides, Target, make_sides

DEFAULT_PROVIDERS = ("shm", "fake")
IN_PROCESS = frozenset({"fake"})

_left_out = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--provider",
        action="append",
        default=[],
        metavar="NAME",
        help="provider to test; may be repeated (default: shm and fake, as far as they are installed)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(*names): capabilities, or 'claim', 'processes', 'default', of the provider"
    )
    config.stash[_left_out] = Counter()


def targets(config: pytest.Config) -> list[Target]:
    """What the options ask for: each kind of matching of each provider once."""
    asked = config.getoption("--provider")
    result = []
    for report in ofipy.getinfo(explain=True, provider=asked or None):
        if report.provider not in (asked or DEFAULT_PROVIDERS):
            continue
        if asked and not report.infos:
            raise pytest.UsageError(f"provider {report.provider} is not available: {report.reason}")
        kinds = {info.offloads_matching: info for info in reversed(report.infos)}
        result += [Target(info.provider, info.domain, info.provider in IN_PROCESS) for info in kinds.values()]
    return result


def lacks(target: Target, need: str) -> str | None:
    """Why a provider cannot run a test with this need, by its own table."""
    info = target.info()
    if need == "claim":
        return "offloads matching, so it sets no message aside" if info.offloads_matching else None
    if need == "default":
        first = ofipy.getinfo(provider=target.provider)[0]
        return None if first.domain == target.domain else "is not what open() takes"
    if need == "processes":
        return "lives in one process" if target.in_process else None
    return None if info.caps & ofipy.Cap[need.upper()] else f"lacks {need}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", targets(metafunc.config), ids=str, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept, left_out = [], []
    for item in items:
        reason = None
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            target = item.callspec.params.get("target")
            needs = [name for marker in item.iter_markers("needs") for name in marker.args]
            reasons = [lacks(target, need) for need in needs] if target is not None else []
            reason = next((f"{target} {each}" for each in reasons if each), None)
        if reason is None:
            kept.append(item)
        else:
            left_out.append(item)
            config.stash[_left_out][reason] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for reason, count in sorted(config.stash[_left_out].items()):
        terminalreporter.write_line(f"left out: {count} tests, since {reason}")


@pytest.fixture(scope="session")
def _all_sides() -> Iterator[dict[Target, Sides]]:
    made: dict[Target, Sides] = {}
    yield made
    for sides in made.values():
        sides.close()


@pytest.fixture
def sides(target: Target, _all_sides: dict[Target, Sides]) -> Sides:
    """Both sides of a test."""
    if target not in _all_sides:
        _all_sides[target] = make_sides(target)
    return _all_sides[target]


@pytest.fixture
def open_endpoint(target: Target) -> Iterator[Callable[..., ofipy.Endpoint]]:
    """Opens endpoints in this process, each in a domain of its own unless told which; closes them at the end.

    One thread drives several domains here, so each has a helper thread, unless a test asks for manual progress.
    """
    made = []

    def make(domain: ofipy.Domain | None = None, **options: Any) -> ofipy.Endpoint:
        endpoint = (
            target.open(**{"progress": "auto"} | options)
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
