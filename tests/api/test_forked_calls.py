# SPDX-License-Identifier: BSD-3-Clause
"""Every public call in a forked child, with statistics on; what is checked stands in ``forked_calls.py``."""

from collections.abc import Callable

import pytest

Run = Callable[..., str]
PROVIDERS = ("shm", "tcp", "link", "fake")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("statistics", ["yes", "no"])
@pytest.mark.timeout(1300)
def test_every_call_in_a_forked_child(
    run: Run, monkeypatch: pytest.MonkeyPatch, provider: str, statistics: str
) -> None:
    monkeypatch.setenv("OFIPY_STATS", statistics)
    said = run("forked_calls.py", provider, timeout=1200)
    for name in ("endpoint", "alias", "domain", "fabric", "cq", "av", "region", "request", "prepared"):
        assert f"{name}: " in said
