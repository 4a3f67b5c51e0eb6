# SPDX-License-Identifier: BSD-3-Clause
"""What the core adds to every transport, and says so in the info."""

import pytest
from sides import Target

import ofipy


def test_multi_receive_wherever_the_core_matches(target: Target) -> None:
    info = target.info()
    if not info.offloads_matching:
        assert ofipy.Cap.MULTI_RECV in info.caps
    assert ofipy.Cap.MULTI_RECV not in info.emulated_caps or not info.offloads_matching


def test_what_is_not_declared_is_refused(target: Target, ep: ofipy.Endpoint) -> None:
    if ofipy.Cap.MULTI_RECV in target.info().caps:
        ep.recv_many(bytearray(10)).cancel()
    else:
        with pytest.raises(ofipy.NotSupported):
            ep.recv_many(bytearray(10))
