# SPDX-License-Identifier: BSD-3-Clause
"""Records: frozen, slotted classes that are dataclasses to whoever asks, and cheap to define.

``@dataclass(frozen=True, slots=True)`` writes six methods as source text and compiles them, each time the module is
imported: 0.4 ms a class, which was the half of what ``import ofipy`` took beyond numpy's import. Here a class gets its
slots, and the methods are the same functions for all. What ``dataclasses`` and ``inspect`` need to know of it is made
when they first ask.

The annotations have to be there when the class is made, which they are not from Python 3.14 on: modules with records
begin with ``from __future__ import annotations``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field
    from inspect import Signature
    from typing import ClassVar, Never

__all__ = ["Record", "set_field"]

set_field = object.__setattr__  # of a record that is being made, by an ``__init__`` of its own


class _Fields(type):
    """Makes slots of the annotations in a class, and keeps the values that stand there as defaults."""

    _fields: tuple[str, ...] = ()
    _defaults: dict[str, Any]
    _shown: tuple[str, ...]
    _kw_only: bool

    def __new__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], *, kw_only: bool = False
    ) -> _Fields:
        own = tuple(body.get("__annotations__", ()))
        fields: tuple[str, ...] = ()
        defaults: dict[str, Any] = {}
        for base in bases:
            if isinstance(base, _Fields):
                fields, defaults = fields + base._fields, defaults | base._defaults
        fields += own
        defaults |= {field: body.pop(field) for field in own if field in body}
        shown = tuple(field for field in fields if field[0] != "_")
        body |= {"__slots__": own, "__match_args__": () if kw_only else shown}
        made = super().__new__(cls, name, bases, body)
        made._fields, made._shown, made._kw_only = fields, shown, kw_only
        made._defaults = defaults
        return made

    @property
    def __signature__(cls) -> Signature | None:
        from inspect import signature

        return None if cls._has_init() else signature(_as_dataclass(cls))

    def _has_init(cls) -> bool:
        """Whether it makes its records itself."""
        return cls.__init__ is not Record.__init__  # type: ignore[misc]


class _Told:
    """An attribute of a record's class that is found out when somebody asks."""

    __slots__ = ("_name",)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, record: object, kind: _Fields) -> Any:
        return getattr(_as_dataclass(kind), self._name)


@cache
def _as_dataclass(kind: _Fields) -> type:
    """A dataclass with the same fields."""
    from dataclasses import MISSING, field, make_dataclass
    from inspect import signature

    taken = signature(kind).parameters if kind._has_init() else kind._fields
    annotations: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        annotations |= vars(base).get("__annotations__", {})
    fields = [
        (
            name,
            annotations[name],
            field(
                default=kind._defaults.get(name, MISSING),
                init=name in taken,
                repr=name in kind._shown,
                compare=name in kind._shown,
            ),
        )
        for name in kind._fields
    ]
    return make_dataclass(kind.__name__, fields, frozen=True, kw_only=kind._kw_only)


@dataclass_transform(frozen_default=True)
class Record(metaclass=_Fields):
    """Base of records: annotate fields in the class, the last of them with defaults.

    Fields whose names begin with an underscore are neither shown nor compared. A record that checks its fields, or is
    made for each message, has an ``__init__`` of its own; what that does not take it has to set.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _Told()
        __dataclass_params__ = _Told()

        def __init__(self, *args, **named):
            kind = type(self)
            fields = kind._fields
            given = dict(zip(() if kind._kw_only else fields, args, strict=False))
            values = kind._defaults | given | named
            if len(given) < len(args) or given.keys() & named.keys() or values.keys() != set(fields):
                kind.__signature__.bind(*args, **named)  # says what is wrong
            for field in fields:
                set_field(self, field, values[field])

    def __setattr__(self, name: str, value: object) -> Never:
        _refuse("assign to", name)

    def __delattr__(self, name: str) -> Never:
        _refuse("delete", name)

    def __repr__(self) -> str:
        fields = ", ".join(f"{each}={getattr(self, each)!r}" for each in type(self)._shown)
        return f"{type(self).__qualname__}({fields})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, each) == getattr(other, each) for each in type(self)._shown)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, each) for each in type(self)._shown))

    def __getstate__(self) -> object:
        return [getattr(self, each) for each in type(self)._fields]

    def __setstate__(self, state: list[Any]) -> None:
        for field, value in zip(type(self)._fields, state, strict=True):
            set_field(self, field, value)

    def __replace__(self, **changes: Any) -> Any:
        from dataclasses import replace

        return replace(self, **changes)


def _refuse(what: str, field: str) -> Never:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {what} field {field!r}")
