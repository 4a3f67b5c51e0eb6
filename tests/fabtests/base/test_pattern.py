# SPDX-License-Identifier: BSD-3-Clause
"""What verified messages hold."""

import pytest

from fabtests.base.pattern import check, pattern
from fabtests.base.program import Failed


def test_digits_and_letters_over_and_over() -> None:
    text = pattern(130).tobytes().decode()
    assert text.startswith("0123456789abcdef")
    assert text[62:124] == text[:62]


def test_the_first_wrong_byte_is_told() -> None:
    data = pattern(100).copy()
    check(data)
    data[17] = 0
    with pytest.raises(Failed, match="100 bytes: 1 differ, the first at 17"):
        check(data)
