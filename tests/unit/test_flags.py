# SPDX-License-Identifier: BSD-3-Clause
"""Options as flags and as text; constants against the header."""

import enum
import operator
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ofipy
from ofipy._base.binding import lib
from ofipy._base.flags import complete_flags, parse_enum, parse_flags


def test_forms_of_flags() -> None:
    both = ofipy.Cap.TAGGED | ofipy.Cap.RMA
    for form in (
        both,
        "tagged|rma",
        "TAGGED, rma",
        {"tagged", "rma"},
        ["tagged", ofipy.Cap.RMA],
        ("tagged|rma",),
    ):
        assert parse_flags(ofipy.Cap, form) is both
    for nothing in (None, "", (), ofipy.Cap(0)):
        assert parse_flags(ofipy.Cap, nothing) == ofipy.Cap(0)


@pytest.mark.parametrize("wrong", ["taged", "tagged|x", ["rma", 5], 5, [None, 7]])
def test_wrong_flags_name_the_known_ones(wrong: object) -> None:
    with pytest.raises(ofipy.InvalidArgument, match=r"tagged|Cap"):
        parse_flags(ofipy.Cap, wrong)  # type: ignore[arg-type]


def test_enums() -> None:
    assert parse_enum(ofipy.EndpointType, "rdm") is ofipy.EndpointType.RDM
    assert parse_enum(ofipy.Threading, ofipy.Threading.SAFE) is ofipy.Threading.SAFE
    with pytest.raises(ofipy.InvalidArgument, match="msg, rdm, dgram"):
        parse_enum(ofipy.EndpointType, "stream")


def test_completion_levels() -> None:
    assert complete_flags(None) == 0
    assert complete_flags("delivery") == ofipy.Flag.DELIVERY_COMPLETE
    for wrong in ("soon", 3, []):
        with pytest.raises(ofipy.InvalidArgument, match="transmit, delivery and match"):
            complete_flags(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        (ofipy.Cap, "OFP_CAP_"),
        (ofipy.Order, "OFP_ORDER_"),
        (ofipy.Completed, "OFP_COMPLETED_"),
        (ofipy.Access, "OFP_ACCESS_"),
        (ofipy.EndpointType, "OFP_EP_"),
    ],
)
def test_every_constant_of_the_header_has_a_member(kind: type, prefix: str) -> None:
    header = (Path(ofipy.get_include()) / "ofipy" / "types.h").read_text()
    names = set(re.findall(rf"#define {prefix}(\w+)", header))
    assert names
    assert names <= set(kind.__members__)
    for name in names:
        assert kind[name].value == getattr(lib, prefix + name)


def test_operation_flags_cover_what_callers_may_set() -> None:
    total = ofipy.Flag(0)
    for flag in ofipy.Flag:
        total |= flag
    assert total == lib.OFP_OPERATION_FLAGS


KINDS = [
    kind
    for name in ofipy.__all__
    if isinstance(kind := getattr(ofipy, name), type) and issubclass(kind, enum.Flag)
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", [operator.and_, operator.or_, operator.xor])
def test_flags_and_integers_of_numpy(kind: type[enum.Flag], operation: Callable[[Any, Any], Any]) -> None:
    flag = list(kind)[1]
    for dtype in (np.uint64, np.int64):
        number, array = dtype(2**33 + 5), np.array([0, flag.value, 7], dtype)
        for result in (operation(number, flag), operation(flag, number)):
            assert type(result) is dtype
            assert int(result) == operation(2**33 + 5, flag.value)
        for results in (operation(array, flag), operation(flag, array)):
            assert results.dtype == dtype
            assert results.tolist() == [operation(int(each), flag.value) for each in array]


@pytest.mark.parametrize("kind", KINDS)
def test_flags_compare_with_integers_of_numpy(kind: type[enum.Flag]) -> None:
    flag = next(iter(kind))
    assert np.uint64(flag.value) == flag
    assert flag == np.uint64(flag.value)
    assert np.uint64(0) != flag
    assert kind(np.uint64(flag.value)) is flag
    assert pickle.loads(pickle.dumps(flag)) is flag


def test_there_are_flags() -> None:
    assert {kind.__name__ for kind in KINDS} == {"Access", "Cap", "Completed", "Flag", "Order"}


def test_fields_of_records() -> None:
    rows = np.zeros(2, ofipy.COMPLETION_DTYPE)
    rows["flags"][0] = ofipy.Completed.RECV | ofipy.Completed.TAGGED
    assert rows[0]["flags"] & ofipy.Completed.TAGGED
    assert not rows[1]["flags"] & ofipy.Completed.TAGGED
    assert (rows["flags"] & ofipy.Completed.RECV != 0).tolist() == [True, False]
    assert ofipy.Completed(rows[0]["flags"]) == ofipy.Completed.RECV | ofipy.Completed.TAGGED
    operations = np.zeros(2, ofipy.OPERATION_DTYPE)
    operations["flags"] |= ofipy.Flag.FENCE
    operations["flags"] &= ~ofipy.Flag.MORE
    assert operations["flags"].tolist() == [int(ofipy.Flag.FENCE)] * 2
    assert np.bitwise_or(ofipy.Flag.FENCE, ofipy.Flag.MORE) == ofipy.Flag.FENCE | ofipy.Flag.MORE
