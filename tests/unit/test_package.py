# SPDX-License-Identifier: BSD-3-Clause
"""The package from outside: public names, records, import cost, stray imports."""

import dataclasses
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from public_methods import methods

import ofipy
from ofipy._base.binding import ffi, lib
from ofipy._operations import atomics, messaging, rma


def test_all_is_complete() -> None:
    assert sorted(ofipy.__all__) == sorted(set(ofipy.__all__))
    public = {
        name
        for name, value in vars(ofipy).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name not in ("TYPE_CHECKING", "Any")
    }
    assert public <= set(ofipy.__all__)
    for name in ofipy.__all__:
        assert getattr(ofipy, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ofipy.nonsense


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_import_on_another_system(system: str) -> None:
    program = f"import sys; sys.platform = {system!r}; import ofipy"
    ended = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60)
    assert f"ImportError: ofipy runs on Linux only, and this is {system}" in ended.stderr
    assert ended.returncode == 1


def test_public_things_are_documented() -> None:
    for name in ofipy.__all__:
        thing = getattr(ofipy, name)
        if inspect.isclass(thing):
            assert thing.__doc__, name
            for member, value in methods(thing):
                if not member.startswith("_") and "ofipy" in value.__module__:
                    assert inspect.getdoc(value), f"{name}.{member}"
        elif inspect.isfunction(thing):
            assert thing.__doc__, name


def test_methods_that_begin_in_c_are_among_them() -> None:
    found = dict(methods(ofipy.EndpointAlias))
    assert found["tsend"] is messaging.tsend
    assert found["send"] is messaging.send
    assert found["write"] is rma.write
    assert found["read"] is rma.read
    for name in ("atomic", "fetch_atomic", "compare_atomic"):
        assert found[name] is getattr(atomics, name)
    for name in ("tsend", "send", "write", "read", "atomic", "fetch_atomic", "compare_atomic"):
        assert not inspect.isfunction(getattr(ofipy.Endpoint, name))


# RMA and atomics have two sides: what is here, and where it goes.
TWO_SIDED = frozenset(
    (
        *("read", "write", "prepare_read", "prepare_write", "post_read", "post_write"),
        *("atomic", "fetch_atomic", "compare_atomic"),
        *("prepare_atomic", "prepare_fetch_atomic", "prepare_compare_atomic"),
        *("post_atomic", "post_fetch_atomic", "post_compare_atomic"),
    )
)


def test_public_things_say_so_in_pickles() -> None:
    """Another version of the package may have them elsewhere."""
    kinds = [thing for name in ofipy.__all__ if inspect.isclass(thing := getattr(ofipy, name))]
    assert {kind.__module__ for kind in kinds} == {"ofipy"}
    handle = ofipy.RemoteRegion(key=1, offset=0, length=8, access=ofipy.Access.REMOTE_READ)
    address = ofipy.Address((("shm", b"x"),))
    for thing in (*kinds, handle, address, ofipy.Cap.MSG, ofipy.EventKind.USER, ofipy.TimedOut("late")):
        assert b"ofipy._" not in pickle.dumps(thing)
        assert str(pickle.loads(pickle.dumps(thing))) == str(thing)


def test_two_positional_arguments_at_most() -> None:
    for name in ofipy.__all__:
        thing = getattr(ofipy, name)
        if not inspect.isclass(thing) or dataclasses.is_dataclass(thing):
            continue
        for member, value in methods(thing):
            if member.startswith("_") or "ofipy" not in value.__module__:
                continue
            kinds = [each.kind for each in inspect.signature(value).parameters.values()]
            positional = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) - 1
            allowed = 2
            if issubclass(thing, ofipy.Endpoint) and member in TWO_SIDED:
                allowed = 4 if member in ("compare_atomic", "prepare_compare_atomic") else 3
            assert positional <= allowed, f"{name}.{member}"


def test_records_are_frozen_and_slotted() -> None:
    for kind in (
        ofipy.Info,
        ofipy.Address,
        ofipy.Message,
        ofipy.Parameter,
        ofipy.Explanation,
        ofipy.Provider,
        ofipy.RemoteRegion,
    ):
        assert dataclasses.is_dataclass(kind)
        assert kind.__dataclass_params__.frozen
        assert "__slots__" in vars(kind)


@pytest.mark.parametrize(
    ("dtype", "name", "size"),
    [
        (ofipy.OPERATION_DTYPE, "struct ofp_operation", 128),
        (ofipy.COMPLETION_DTYPE, "struct ofp_completion", 64),
        (ofipy.SEGMENT_DTYPE, "struct ofp_segment", 24),
    ],
)
def test_dtypes_are_the_layout_of_c(dtype: np.dtype, name: str, size: int) -> None:
    assert dtype.itemsize == size == ffi.sizeof(name)
    covered = {
        byte for kind, offset in dtype.fields.values() for byte in range(offset, offset + kind.itemsize)
    }
    assert covered == set(range(size))
    for field, description in ffi.typeof(name).fields:
        assert dtype.fields[field][1] == description.offset
        assert dtype[field].itemsize == ffi.sizeof(description.type)
    rows = np.zeros(1, dtype)
    pointer = ffi.from_buffer(f"{name}[]", rows)
    for number, field in enumerate(dtype.names, 1):
        setattr(pointer[0], field, number)
        assert rows[field][0] == number
    assert ofipy.COMPLETION_DTYPE["error"] == np.int32
    assert lib.OFP_RECORD_VERSION == ofipy.RECORD_VERSION


def test_operation_arrays() -> None:
    from ofipy._memory.records import operations

    ops = operations(3)
    assert ops.dtype == ofipy.OPERATION_DTYPE
    assert not ops.view(np.uint8).any()
    assert ops.ctypes.data % 64 == 0
    ops["op"] = ofipy.Op.TSEND
    ops["flags"] = ofipy.Flag.INJECT | ofipy.Flag.FENCE
    assert list(ops["op"]) == [3, 3, 3]
    assert list(ops["flags"]) == [17, 17, 17]
    assert operations(0).shape == (0,)


def test_headers_are_where_get_include_says() -> None:
    folder = Path(ofipy.get_include()) / "ofipy"
    assert (folder / "provider.h").is_file()
    assert (folder / "types.h").is_file()


def test_import_brings_nothing_heavy() -> None:
    """What costs time to import is imported when it is first needed."""
    script = """
import sys, numpy
before = set(sys.modules)
import ofipy
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {
        "asyncio",
        "click",
        "rich",
        "importlib.metadata",
        "tomllib",
        "logging",
        "platformdirs",
        "difflib",
        "subprocess",
        "socket",
        "hashlib",
        "ofipy._objects.group",
    }
    assert not heavy & set(done.stdout.split())


def test_version() -> None:
    assert ofipy.__version__.count(".") >= 1
    assert ofipy.measure.__name__ == "ofipy.measure"


def test_match_measurement() -> None:
    assert ofipy.measure.match("expected", 10, iterations=100) > 0
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.measure.match("nonsense", 10, iterations=100)
