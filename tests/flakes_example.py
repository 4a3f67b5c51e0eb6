# SPDX-License-Identifier: BSD-3-Clause
"""Tests for ``tests/unit/test_flakes.py``: they write down their order, and one fails where it is told to."""

import os

import pytest


@pytest.mark.parametrize("number", range(6))
def test_order(number: int) -> None:
    with open(os.environ["ORDER"], "a") as order:
        order.write(f"{number} ")


def test_that_may_fail() -> None:
    assert "FAIL" not in os.environ, "on purpose"
