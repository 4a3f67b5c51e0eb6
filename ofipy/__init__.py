# SPDX-License-Identifier: BSD-3-Clause
"""Messaging that does not care which network is under it.

>>> import ofipy
>>> with ofipy.open() as ep:
...     _ = ep.tsend(b"hello", ep.insert(ep.address), tag=7)
...     bytes(ep.trecv(tag=7).wait(timeout=5))
b'hello'
"""

from typing import TYPE_CHECKING, Any

# Opening and asking
from ofipy._address import Address
from ofipy._alias import EndpointAlias
from ofipy._atomics import AtomicOp, Datatype
from ofipy._av import AddressVector, Peer
from ofipy._completion import COMPLETION_DTYPE, CompletionBatch, CompletionQueue
from ofipy._config import Parameter, parameters
from ofipy._connection import Connection
from ofipy._counter import Counter, DeferredWork
from ofipy._endpoint import Endpoint, EndpointStatistics
from ofipy._errors import (
    AccessDenied,
    AddressInUse,
    Again,
    BufferTypeError,
    Busy,
    Canceled,
    Closed,
    ConfigError,
    ConnectionRefused,
    FabricError,
    ForkedError,
    InvalidArgument,
    MessageTooLong,
    NoMemory,
    NoMessage,
    NotConnected,
    NotSupported,
    PeerLost,
    ProviderUnavailable,
    RemoteAccessError,
    ThreadingError,
    TimedOut,
    Truncated,
    UnknownPeer,
    Unreachable,
)
from ofipy._event import Event, EventKind, EventQueue
from ofipy._fabric import Domain, Fabric
from ofipy._flags import Access, Cap, Completed, EndpointType, Flag, Op, Order, Progress, Threading
from ofipy._hooks import Hook
from ofipy._info import AddressFormat, Explanation, Info, getinfo
from ofipy._multi_receive import MessageView, MultiReceive
from ofipy._open import listen, open
from ofipy._operations import OPERATION_DTYPE, RECORD_VERSION, SEGMENT_DTYPE
from ofipy._passive import ConnectionRequest, PassiveEndpoint
from ofipy._profile import ProfileRow
from ofipy._providers import Provider
from ofipy._receive_context import ReceiveContext
from ofipy._region import Region
from ofipy._remote import RemoteRegion
from ofipy._request import Message, MessageRequest, PreparedRequest, Request
from ofipy._together import start, wait_all, wait_any

if TYPE_CHECKING:
    from ofipy import measure

__all__ = [
    "COMPLETION_DTYPE",
    "OPERATION_DTYPE",
    "RECORD_VERSION",
    "SEGMENT_DTYPE",
    "Access",
    "AccessDenied",
    "Address",
    "AddressFormat",
    "AddressInUse",
    "AddressVector",
    "Again",
    "AtomicOp",
    "BufferTypeError",
    "Busy",
    "Canceled",
    "Cap",
    "Closed",
    "Completed",
    "CompletionBatch",
    "CompletionQueue",
    "ConfigError",
    "Connection",
    "ConnectionRefused",
    "ConnectionRequest",
    "Counter",
    "Datatype",
    "DeferredWork",
    "Domain",
    "Endpoint",
    "EndpointAlias",
    "EndpointStatistics",
    "EndpointType",
    "Event",
    "EventKind",
    "EventQueue",
    "Explanation",
    "Fabric",
    "FabricError",
    "Flag",
    "ForkedError",
    "Hook",
    "Info",
    "InvalidArgument",
    "Message",
    "MessageRequest",
    "MessageTooLong",
    "MessageView",
    "MultiReceive",
    "NoMemory",
    "NoMessage",
    "NotConnected",
    "NotSupported",
    "Op",
    "Order",
    "Parameter",
    "PassiveEndpoint",
    "Peer",
    "PeerLost",
    "PreparedRequest",
    "ProfileRow",
    "Progress",
    "Provider",
    "ProviderUnavailable",
    "ReceiveContext",
    "Region",
    "RemoteAccessError",
    "RemoteRegion",
    "Request",
    "Threading",
    "ThreadingError",
    "TimedOut",
    "Truncated",
    "UnknownPeer",
    "Unreachable",
    "__version__",
    "get_include",
    "getinfo",
    "listen",
    "measure",
    "open",
    "parameters",
    "start",
    "wait_all",
    "wait_any",
]


def get_include() -> str:
    """Folder of the C headers, for building a provider outside this package."""
    from pathlib import Path

    package = Path(__file__).parent
    installed = package / "include"
    # In an editable installation the package is the source tree.
    return str(installed if installed.is_dir() else package.parent / "native" / "include")


def __getattr__(name: str) -> Any:
    # What costs import time and is seldom asked for.
    if name == "__version__":
        from importlib.metadata import version

        return version("ofipy")
    if name == "measure":
        from importlib import import_module

        return import_module("ofipy.measure")
    raise AttributeError(f"module 'ofipy' has no attribute {name!r}")
