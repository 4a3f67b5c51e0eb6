# SPDX-License-Identifier: BSD-3-Clause
"""Our ``tcp`` with software that is not ours: libfabric itself, reached through the bridge, and its ``fi_pingpong``.

The libfabric is the one of the ``mpich`` wheel unless ``OFIPY_LIBFABRIC`` names another; ``fi_pingpong`` is looked
for in the path. Everything runs over the loopback interface.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ofipy.providers.ofi import _bundled

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("OFIPY_LIBFABRIC", _bundled().get("OFI_BUNDLED", ""))

Pair = tuple[ofipy.Endpoint, ofipy.Endpoint, ofipy.Peer, ofipy.Peer]


def open_on_loopback(
    provider: str, address_format: ofipy.AddressFormat = ofipy.AddressFormat.IPV4, *, ep_type: str = "rdm"
) -> ofipy.Endpoint:
    """An endpoint with a helper thread, since one test drives both sides."""
    reports = ofipy.getinfo(provider=provider, ep_type=ep_type, explain=True)
    infos = [
        info
        for report in reports
        for info in report.infos
        if info.domain.startswith("lo") and info.address_format is address_format
    ]
    if not infos:
        pytest.skip(f"{provider} is not available: {reports[0].reason if reports else 'no libfabric'}")
    return ofipy.Fabric(infos[0]).domain(progress="auto").endpoint().enable()


def raw_address(endpoint: ofipy.Endpoint) -> bytes:
    """The socket address, which both providers write alike."""
    return endpoint.address.entries[0][1]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Our endpoint, libfabric's, and each as the other's peer."""
    theirs, ours = open_on_loopback("ofi:tcp"), open_on_loopback("tcp")
    yield ours, theirs, ours.insert(raw_address(theirs)), theirs.insert(raw_address(ours))
    ours.fabric.close()
    theirs.fabric.close()
