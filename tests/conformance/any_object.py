# SPDX-License-Identifier: BSD-3-Clause
"""Any object that can be sent, and whether two are alike."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

__all__ = ["objects", "same"]

_EXCEPTIONS = (
    StopIteration,
    StopAsyncIteration,
    GeneratorExit,
    KeyboardInterrupt,
    ValueError,
    KeyError,
    Exception,
)


def objects() -> st.SearchStrategy[Any]:
    """Scalars, arrays, and tuples, lists, dictionaries and exceptions of objects."""
    scalars = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=8)
        | st.binary(max_size=8)
        | st.builds(bytearray, st.binary(max_size=8))
        | st.sampled_from([StopIteration, Ellipsis, NotImplemented])
        | st.builds(np.arange, st.integers(0, 300))
    )
    return st.recursive(scalars, _containers, max_leaves=6) | _containers(scalars)


def _containers(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(parts, max_size=3)
    return (
        several.map(tuple)
        | several
        | st.dictionaries(st.text(max_size=3), parts, max_size=2)
        | st.builds(lambda kind, values: kind(*values), st.sampled_from(_EXCEPTIONS), several)
    )


def same(one: Any, other: Any) -> bool:
    """Whether they are alike: of one type, and equal, which exceptions are not that have equal arguments."""
    if type(one) is not type(other):
        return False
    if isinstance(one, BaseException):
        return same(one.args, other.args)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return bool(one == other)
