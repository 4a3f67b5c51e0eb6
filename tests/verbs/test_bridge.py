# SPDX-License-Identifier: BSD-3-Clause
"""Our connected endpoints and libfabric's over the device, which the bridge reaches, in both roles.

``OFIPY_LIBFABRIC`` names a libfabric 2: before, its verbs makes a queue pair when an endpoint is enabled, and so wants
to know the peer when it is opened; the bridge knows it when it connects.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ofipy
from ofipy._base.binding import ffi

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))
import connected
from connected import info_of

ROLES = [("verbs", "ofi:verbs"), ("ofi:verbs", "verbs")]

pytestmark = [
    pytest.mark.parametrize(("there", "here"), ROLES, ids="{}".format),
    pytest.mark.timeout(120),
]


@pytest.fixture
def device() -> str:
    """Its name, with which both providers begin the names of domains."""
    infos = ofipy.getinfo(provider="ofi:verbs", ep_type="msg")
    if not infos or ffi.from_buffer("struct ofp_info *", infos[0]._record).provider_data[0] >> 16 < 2:
        pytest.skip("libfabric 2 is not named by OFIPY_LIBFABRIC")
    return ofipy.getinfo(provider="verbs", ep_type="msg")[0].domain.partition("-")[0].partition(":")[0]


@pytest.mark.parametrize("scene", [connected.say_private_data, connected.be_refused])
def test_requests(
    there: str, here: str, device: str, scene: Callable[[ofipy.Info, ofipy.Info], None]
) -> None:
    scene(info_of(there, device), info_of(here, device))


@pytest.mark.parametrize(
    "scene",
    [connected.exchange_messages, connected.say_data, connected.reach_memory, connected.shut_down],
)
def test_connections(there: str, here: str, device: str, scene: Callable[[connected.Ends], None]) -> None:
    with connected.connected(info_of(there, device), info_of(here, device)) as ends:
        scene(ends)
