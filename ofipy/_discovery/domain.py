# SPDX-License-Identifier: BSD-3-Clause
"""What an object needs of the domain that it belongs to.

The class :class:`~ofipy.Domain` makes queues, vectors and endpoints, so it is above them all. They ask for no more than
this, and hand back the domain that they were given.
"""

from typing import TYPE_CHECKING, Any, Generic, Protocol

from ofipy._base.lifetime import Handle, Resource
from ofipy._discovery.info import Info

__all__ = ["Child", "D", "Domain"]


class Domain(Protocol):
    """A domain, as those below it see it."""

    _core: Handle

    @property
    def info(self) -> Info:
        """Capabilities and limits."""
        ...

    @property
    def provider(self) -> str:
        """Name of the provider."""
        ...

    def _pointer(self, operation: str) -> Any: ...


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # The class of the domain, for type checkers: `ofipy.CompletionQueue` without it is a queue of any.
    D = TypeVar("D", bound=Domain, default=Any)
else:
    from typing import TypeVar

    D = TypeVar("D")


class Child(Resource, Generic[D]):
    """Base of what is opened from a domain."""

    __slots__ = ("_domain",)

    _domain: D

    @property
    def domain(self) -> D:
        """What it was opened from."""
        return self._domain
