# SPDX-License-Identifier: BSD-3-Clause
"""Tests on an RDMA device, in the guest or on a machine that has one: see README.md."""

import pytest

import ofipy


@pytest.fixture(autouse=True)
def _device() -> None:
    (report,) = (each for each in ofipy.getinfo(provider="verbs", explain=True) if each.provider == "verbs")
    if not report.infos:
        pytest.skip(str(report.reason))
