# SPDX-License-Identifier: BSD-3-Clause
"""A message of Dask is what was sent, whichever object it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from any_object import objects, same
from both_ends import pair
from distributed.protocol import to_serialize
from hypothesis import HealthCheck, given, settings

pytestmark = [pytest.mark.usefixtures("provider"), pytest.mark.timeout(60)]


def test_comes_out_as_it_went_in() -> None:
    with asyncio.Runner() as runner:
        ends = pair()
        here, there, _ = runner.run(ends.__aenter__())

        async def exchange(value: Any) -> Any:
            await here.write({"value": to_serialize(value)})
            return await asyncio.wait_for(there.read(), 30)

        @given(value=objects())
        @settings(
            max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
        )
        def check(value: Any) -> None:
            got = runner.run(exchange(value))["value"]
            assert same(got, value), f"{value!r} came out as {got!r}"

        try:
            check()
        finally:
            runner.run(ends.__aexit__(None, None, None))
