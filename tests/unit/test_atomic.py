# SPDX-License-Identifier: BSD-3-Clause
"""Atomic operations: the executor against numpy, names and datatypes, what a domain and the command line answer."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, from_dtype

import ofipy
from ofipy import AtomicOp, Cap, Datatype, Domain, Info
from ofipy._base.atomic_types import KINDS
from ofipy._base.binding import ffi as core_ffi
from ofipy.cli.atomics import show_atomics
from ofipy.cli.support import CommandError

ROOT = Path(__file__).resolve().parents[2]
INTEGERS = [each for each in Datatype if each.dtype.kind in "iu"]
ORDERED = [each for each in Datatype if each.dtype.kind in "iuf"]
OPERATIONS = {
    **dict.fromkeys(("SUM", "PROD", "DIFF", "LOR", "LAND", "LXOR", "WRITE"), (("base", "fetch"), list(Datatype))),
    **dict.fromkeys(("MIN", "MAX"), (("base", "fetch"), ORDERED)),
    **dict.fromkeys(("BOR", "BAND", "BXOR"), (("base", "fetch"), INTEGERS)),
    "READ": (("fetch",), list(Datatype)),
    **dict.fromkeys(("CSWAP", "CSWAP_NE"), (("compare",), list(Datatype))),
    **dict.fromkeys(("CSWAP_LE", "CSWAP_LT", "CSWAP_GE", "CSWAP_GT"), (("compare",), ORDERED)),
    "MSWAP": (("compare",), INTEGERS),
}  # fmt: skip
VALID = {
    (kind, AtomicOp[op], datatype)
    for op, (kinds, datatypes) in OPERATIONS.items()
    for kind in kinds
    for datatype in datatypes
}


# ------------------------------------------------------------------------------------------- the executor against numpy


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The core's executor, compiled by itself, so that undefined behaviour ends the process."""
    from cffi import FFI

    source = ROOT / "native" / "src"
    library = tmp_path_factory.mktemp("executor") / "executor.so"
    files = [*sorted((source / "atomic").glob("*.c")), source / "base" / "lock.c"]
    command = [
        *shlex.split(os.environ.get("CC", "cc")),
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O2",
        "-shared",
        "-fPIC",
    ]
    command += ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    command += [
        "-I",
        str(ROOT / "native" / "include"),
        "-I",
        str(source),
        "-o",
        str(library),
        *map(str, files),
    ]
    subprocess.run(command, check=True, timeout=100)
    ffi = FFI()
    ffi.cdef(
        """
        bool ofpi_atomic_is_valid(uint32_t, uint32_t, uint32_t);
        int ofpi_atomic_execute(uint32_t, uint32_t, uint32_t, void *, const void *, const void *, void *, uint64_t);
        """
    )
    return ffi, ffi.dlopen(str(library))


def test_the_matrix(executor: Any) -> None:
    _, library = executor
    for kind, code in KINDS.items():
        for op in AtomicOp:
            for datatype in Datatype:
                valid = library.ofpi_atomic_is_valid(code, op, datatype)
                assert valid == ((kind, op, datatype) in VALID), (kind, op, datatype)


def elements(datatype: Datatype) -> st.SearchStrategy[Any]:
    if datatype.dtype.kind == "c":
        # No product overflows: C keeps an infinite one infinite, numpy does not.
        parts = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.5]), st.floats(-(2.0**50), 2.0**50, width=32))
        return st.builds(complex, parts, parts)
    few = st.sampled_from([0, 1, 2, 3])
    return few | from_dtype(datatype.dtype)


def multiply(old: Any, operand: Any) -> Any:
    if old.dtype.kind != "c":
        return old * operand
    # By parts: numpy's own complex product may fuse its last two steps, which rounds once less.
    result = np.empty_like(old)
    result.real = old.real * operand.real - old.imag * operand.imag
    result.imag = old.real * operand.imag + old.imag * operand.real
    return result


def reference(op: AtomicOp, old: Any, operand: Any, compare: Any) -> Any:
    """What fi_atomic(3) leaves at the target."""
    conditions = {
        AtomicOp.MIN: lambda: operand < old,
        AtomicOp.MAX: lambda: operand > old,
        AtomicOp.READ: lambda: np.zeros(old.shape, bool),
        AtomicOp.WRITE: lambda: np.ones(old.shape, bool),
        AtomicOp.CSWAP: lambda: compare == old,
        AtomicOp.CSWAP_NE: lambda: compare != old,
        AtomicOp.CSWAP_LE: lambda: compare <= old,
        AtomicOp.CSWAP_LT: lambda: compare < old,
        AtomicOp.CSWAP_GE: lambda: compare >= old,
        AtomicOp.CSWAP_GT: lambda: compare > old,
    }
    values = {
        AtomicOp.SUM: lambda: old + operand,
        AtomicOp.DIFF: lambda: old - operand,
        AtomicOp.PROD: lambda: multiply(old, operand),
        AtomicOp.LOR: lambda: np.logical_or(old, operand).astype(old.dtype),
        AtomicOp.LAND: lambda: np.logical_and(old, operand).astype(old.dtype),
        AtomicOp.LXOR: lambda: np.logical_xor(old, operand).astype(old.dtype),
        AtomicOp.BOR: lambda: old | operand,
        AtomicOp.BAND: lambda: old & operand,
        AtomicOp.BXOR: lambda: old ^ operand,
        AtomicOp.MSWAP: lambda: operand & compare | old & ~compare,
    }
    with np.errstate(all="ignore"):
        return np.where(conditions[op](), operand, old) if op in conditions else values[op]()


def assert_same(found: Any, wanted: Any) -> None:
    """Equal, signs of zero included; any NaN equals any other."""
    parts = "real", "imag"
    for one, other in [(getattr(found, part), getattr(wanted, part)) for part in parts]:
        np.testing.assert_array_equal(one, other)
        if one.dtype.kind == "f":
            number = ~np.isnan(one)
            np.testing.assert_array_equal(np.signbit(one[number]), np.signbit(other[number]))


@pytest.mark.parametrize("datatype", list(Datatype), ids=lambda each: each.name.lower())
@settings(max_examples=25, derandomize=True, database=None)
@given(data=st.data())
def test_random_vectors(executor: Any, datatype: Datatype, data: st.DataObject) -> None:
    ffi, library = executor
    vectors = arrays(datatype.dtype, data.draw(st.integers(0, 90)), elements=elements(datatype))
    old, operand, compare = (data.draw(vectors) for _ in range(3))
    memory = np.zeros(old.nbytes + 512, np.uint8)
    start = data.draw(st.integers(0, 511))
    target = memory[start : start + old.nbytes]
    address = ffi.cast("void *", memory.ctypes.data + start)
    for kind, code in KINDS.items():
        for op in AtomicOp:
            if (kind, op, datatype) not in VALID:
                continue
            target[:] = old.view(np.uint8)
            result = np.zeros_like(old)
            pointers = (ffi.cast("void *", array.ctypes.data) for array in (operand, compare, result))
            assert library.ofpi_atomic_execute(code, op, datatype, address, *pointers, old.size) == 0
            assert_same(target.copy().view(datatype.dtype), reference(op, old, operand, compare))
            assert result.tobytes() == (bytes(old.nbytes) if kind == "base" else old.tobytes())
            assert not memory[:start].any()
            assert not memory[start + old.nbytes :].any()


def test_every_half(executor: Any) -> None:
    """Both conversions, over all 65,536 halves: a product and a sum with few others."""
    ffi, library = executor
    old = np.arange(65536, dtype=np.uint16).view(np.float16)
    for factor in (1.0, 0.5, -0.333, 1.0005, 3.0, 6e-8, 65504.0):
        operand = np.full_like(old, factor)
        for op in (AtomicOp.SUM, AtomicOp.PROD, AtomicOp.DIFF):
            target = old.copy()
            assert library.ofpi_atomic_execute(
                KINDS["base"], op, Datatype.FLOAT16, ffi.cast("void *", target.ctypes.data),
                ffi.cast("void *", operand.ctypes.data), ffi.NULL, ffi.NULL, target.size,
            ) == 0  # fmt: skip
            assert_same(target, reference(op, old, operand, None))


# -------------------------------------------------------------------------------------------------- names and datatypes


def test_datatypes_and_dtypes_are_one_to_one() -> None:
    assert {Datatype.from_dtype(each.dtype) for each in Datatype} == set(Datatype)
    assert Datatype.from_dtype(float) is Datatype.DOUBLE
    assert Datatype.from_dtype("c8") is Datatype.FLOAT_COMPLEX
    # C has two types of 64 bits; both are the same one here.
    assert Datatype.from_dtype("long") is Datatype.from_dtype("longlong") is Datatype.INT64


@pytest.mark.parametrize(
    "dtype", [">u4", "bool", "longdouble", "clongdouble", "object", "S4", "M8[s]", [("a", "i4")], "nonsense"]
)
def test_dtypes_without_a_datatype(dtype: Any) -> None:
    with pytest.raises(ofipy.BufferTypeError, match=r"byte order|known are int8"):
        Datatype.from_dtype(dtype)


def test_the_numbers_are_libfabrics() -> None:
    assert list(AtomicOp) == list(range(20))
    assert (AtomicOp.READ, AtomicOp.CSWAP, AtomicOp.MSWAP, AtomicOp.DIFF) == (10, 12, 18, 19)
    assert [int(each) for each in Datatype] == [*range(12), 16]


# ------------------------------------------------------------------------------------------- a domain, and the command


@pytest.fixture
def info() -> Info:
    """An info of shm as it is with the capability."""
    found = ofipy.getinfo(provider="shm")[0]
    record = core_ffi.new("struct ofp_info *")
    core_ffi.buffer(record)[:] = found._record
    record.caps |= Cap.ATOMIC.value
    record.max_atomic_size = 1 << 20
    return replace(
        found, caps=found.caps | Cap.ATOMIC, max_atomic_size=1 << 20, _record=bytes(core_ffi.buffer(record))
    )


@pytest.fixture
def domain(info: Info) -> Iterator[Domain]:
    with ofipy.Fabric(info) as fabric, fabric.domain() as opened:
        yield opened


def test_a_domain_answers_by_name(domain: Domain) -> None:
    longest = domain.info.max_atomic_size
    assert domain.atomic_valid("sum", np.uint8) == longest
    assert domain.atomic_valid(AtomicOp.SUM, Datatype.UINT64, kind="fetch") == longest // 8
    assert domain.atomic_valid("CSWAP_LE", "float16", kind="compare") == longest // 2
    assert domain.atomic_valid("cswap", np.uint64) == 0
    assert domain.atomic_valid("bor", float) == 0
    with pytest.raises(ofipy.InvalidArgument, match="known are min, max"):
        domain.atomic_valid("add", np.uint64)
    with pytest.raises(ofipy.InvalidArgument, match="base, fetch, compare"):
        domain.atomic_valid("sum", np.uint64, kind="swap")  # type: ignore[arg-type]
    with pytest.raises(ofipy.BufferTypeError, match="bool"):
        domain.atomic_valid("sum", bool)


def test_the_command_lists_every_combination(
    info: Info, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ofipy, "getinfo", lambda **_: [info])
    show_atomics(provider=None, caps=None, ep_type=None, as_json=True)
    document = json.loads(capsys.readouterr().out)
    (found,) = document["atomics"]
    assert (document["schema"], found["provider"], found["reason"]) == (1, "shm", None)
    assert found["base"]["sum"]["complex128"] == info.max_atomic_size // 16
    listed = {
        (kind, AtomicOp[op.upper()], Datatype.from_dtype(dtype))
        for kind in KINDS
        for op, counts in found[kind].items()
        for dtype in counts
    }
    assert listed == VALID
    monkeypatch.setenv("COLUMNS", "80")
    show_atomics(provider=None, caps=None, ep_type=None, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if "cswap_ne" in line]
    assert [row.count("x") for row in rows] == [13]


def test_the_command_without_any(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="atomic"):
        show_atomics(provider="shm", caps="multicast", ep_type=None, as_json=True)
    assert json.loads(capsys.readouterr().out)["atomics"] == []


def test_the_command_says_why_a_domain_cannot_be_asked(
    info: Info, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> Domain:
        raise ofipy.NoMemory("no room")

    monkeypatch.setattr(ofipy, "getinfo", lambda **_: [info])
    monkeypatch.setattr(ofipy.Fabric, "domain", refuse)
    show_atomics(provider=None, caps=None, ep_type=None, as_json=False)
    assert "no room" in capsys.readouterr().out


def test_the_page_says_the_same() -> None:
    """The matrix of the reference page: a row for each operation, a column for each family of types."""
    families = {"integers": INTEGERS, "floats": [each for each in Datatype if each.dtype.kind == "f"]}
    families["complex"] = [each for each in Datatype if each.dtype.kind == "c"]
    text = (ROOT / "docs" / "reference" / "atomics.md").read_text()
    written = set()
    for name, kinds, *marks in re.findall(
        r"^\| `(\w+)` \|[^|]*\| ([\w, ]+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE
    ):
        for family, mark in zip(families.values(), marks, strict=True):
            assert mark.strip() in ("yes", "–")
            if mark.strip() == "yes":
                written |= {
                    (kind, AtomicOp[name.upper()], each) for kind in kinds.split(", ") for each in family
                }
    assert written == VALID
