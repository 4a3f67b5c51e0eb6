# SPDX-License-Identifier: BSD-3-Clause
"""Options as flags and as text; constants against the header."""

import re
from pathlib import Path

import pytest

import ofipy
from ofipy._binding import lib
from ofipy._flags import complete_flags, parse_enum, parse_flags


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
