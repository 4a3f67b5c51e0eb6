# SPDX-License-Identifier: BSD-3-Clause
"""Records: what a frozen dataclass with slots would be."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import Any

import pytest

from ofipy._base.record import Record, set_field
from tests.command import environment_without_coverage


class Point(Record):
    """Made by the common ``__init__``."""

    x: int
    y: int = 2
    _kept: bytes = b""


class Named(Record, kw_only=True):
    """By keywords only."""

    name: str = "none"


class Square(Record):
    """Makes itself."""

    side: int
    _area: int

    def __init__(self, side: int = 1) -> None:
        set_field(self, "side", side)
        set_field(self, "_area", side * side)


def test_fields_are_given_by_position_name_or_default() -> None:
    assert Point(1) == Point(x=1) == Point(1, y=2) == Point(1, 2, b"other")
    assert hash(Point(1)) == hash(Point(1, 2, b"other"))
    assert Point(1) != Point(1, 3)
    assert Point(1) != (1, 2, b"")
    assert repr(Point(1)) == "Point(x=1, y=2)"
    assert Named(name="a").name == "a"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Point(), "missing a required argument: 'x'"),  # type: ignore[call-arg]
        (lambda: Point(1, 2, b"", 4), "too many positional"),  # type: ignore[call-arg]
        (lambda: Point(1, x=1), "multiple values for argument 'x'"),  # type: ignore[misc]
        (lambda: Point(1, z=1), "unexpected keyword argument 'z'"),  # type: ignore[call-arg]
        (lambda: Named("a"), "too many positional"),  # type: ignore[misc]
    ],
)
def test_what_is_wrong_with_arguments(make: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        make()


@pytest.mark.parametrize("record", [Point(1), Named(), Square(3)])
def test_nothing_changes_it(record: Any) -> None:
    name = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(record, name, 5)
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{name}'"):
        delattr(record, name)
    assert not hasattr(record, "__dict__")
    assert copy.copy(record) == copy.deepcopy(record) == pickle.loads(pickle.dumps(record)) == record


def test_dataclasses_and_inspect_know_it() -> None:
    assert dataclasses.is_dataclass(Point)
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "_kept": b""}
    changed = dataclasses.replace(Point(1, 2, b"kept"), x=3)
    assert (changed.x, changed.y, changed._kept) == (3, 2, b"kept")
    assert dataclasses.replace(Square(2), side=3)._area == 9
    assert [each.name for each in dataclasses.fields(Square) if each.init] == ["side"]
    assert str(inspect.signature(Named)) == "(*, name: 'str' = 'none') -> None"
    assert list(inspect.signature(Square).parameters) == ["side"]
    match Point(1):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_a_class_may_follow_it() -> None:
    class Solid(Point):
        z: int = 3

    assert repr(Solid(1)).endswith("Solid(x=1, y=2, z=3)")
    assert Solid(1) != Point(1)
    assert [each.name for each in dataclasses.fields(Solid)] == ["x", "y", "_kept", "z"]


def test_importing_ofipy_writes_no_dataclass() -> None:
    """Each would take 0.4 ms."""
    # Coverage's start-up file, where it is installed, imports the module before the program begins.
    program = (
        "import sys; sys.modules.pop('dataclasses', None); import ofipy; print('dataclasses' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=environment_without_coverage(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "False"
