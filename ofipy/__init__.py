# SPDX-License-Identifier: BSD-3-Clause
"""Messaging that does not care which network is under it.

>>> import ofipy
>>> with ofipy.open() as ep:
...     _ = ep.tsend(b"hello", ep.insert(ep.address), tag=7)
...     bytes(ep.trecv(tag=7).wait(timeout=5))
b'hello'
"""

import sys
from typing import TYPE_CHECKING, Any

if sys.platform != "linux":
    raise ImportError(
        f"ofipy runs on Linux only, and this is {sys.platform}: use a Linux machine, virtual machine or container"
    )

from ofipy._base.atomic_types import AtomicOp, Datatype
from ofipy._base.config import Parameter, parameters
from ofipy._base.errors import (
    AccessDenied,
    AddressInUse,
    Again,
    BufferTypeError,
    Busy,
    Canceled,
    Closed,
    CollectiveMismatch,
    ConfigError,
    ConnectionRefused,
    FabricError,
    ForkedError,
    GroupBroken,
    IncompatiblePeer,
    InvalidArgument,
    MessageTooLong,
    MissingKeyFile,
    NoMemory,
    NoMessage,
    NotConnected,
    NotSent,
    NotSupported,
    PeerLost,
    ProviderUnavailable,
    RemoteAccessError,
    ThreadingError,
    TimedOut,
    Truncated,
    UnknownPeer,
    Unreachable,
    WorkerLost,
)
from ofipy._base.flags import (
    Access,
    Cap,
    Completed,
    Encryption,
    EndpointType,
    Flag,
    Op,
    Order,
    PeerProof,
    Progress,
    Threading,
)
from ofipy._completion.counter import Counter, DeferredWork
from ofipy._completion.cq import CompletionBatch, CompletionQueue
from ofipy._completion.eq import Event, EventKind, EventQueue
from ofipy._completion.request import Message, MessageRequest, PreparedRequest, Request
from ofipy._completion.together import start, wait_all, wait_any

# Opening and asking
from ofipy._discovery.address import Address
from ofipy._discovery.av import AddressVector, Peer
from ofipy._discovery.hooks import Hook
from ofipy._discovery.info import AddressFormat, Explanation, Info, getinfo
from ofipy._discovery.providers import PROVIDER_ABI, Provider
from ofipy._memory.records import RECORD_VERSION
from ofipy._memory.region import Region
from ofipy._memory.remote import RemoteRegion
from ofipy._objects.endpoint import Endpoint, EndpointAlias
from ofipy._objects.fabric import Domain, Fabric
from ofipy._objects.open import listen, open
from ofipy._objects.passive import ConnectionRequest, PassiveEndpoint
from ofipy._objects.profile import ProfileRow
from ofipy._objects.protocols import Protocol
from ofipy._objects.receive_context import ReceiveContext
from ofipy._objects.security import Security
from ofipy._objects.statistics import EndpointStatistics
from ofipy._operations.connection import Connection
from ofipy._operations.multi_receive import MessageView, MultiReceive
from ofipy._operations.objects import ObjectRequest, Serializer

if TYPE_CHECKING:
    from ofipy import measure
    from ofipy._completion.selector import Selector, loop
    from ofipy._memory.records import COMPLETION_DTYPE, OPERATION_DTYPE, SEGMENT_DTYPE
    from ofipy._objects.group import Group
    from ofipy._operations.collective_start import CollectiveRequest
    from ofipy.executor import Executor
    from ofipy.jobs.job import Job
    from ofipy.jobs.join import job

__all__ = [
    "COMPLETION_DTYPE",
    "OPERATION_DTYPE",
    "PROVIDER_ABI",
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
    "CollectiveMismatch",
    "CollectiveRequest",
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
    "Encryption",
    "Endpoint",
    "EndpointAlias",
    "EndpointStatistics",
    "EndpointType",
    "Event",
    "EventKind",
    "EventQueue",
    "Executor",
    "Explanation",
    "Fabric",
    "FabricError",
    "Flag",
    "ForkedError",
    "Group",
    "GroupBroken",
    "Hook",
    "IncompatiblePeer",
    "Info",
    "InvalidArgument",
    "Job",
    "Message",
    "MessageRequest",
    "MessageTooLong",
    "MessageView",
    "MissingKeyFile",
    "MultiReceive",
    "NoMemory",
    "NoMessage",
    "NotConnected",
    "NotSent",
    "NotSupported",
    "ObjectRequest",
    "Op",
    "Order",
    "Parameter",
    "PassiveEndpoint",
    "Peer",
    "PeerLost",
    "PeerProof",
    "PreparedRequest",
    "ProfileRow",
    "Progress",
    "Protocol",
    "Provider",
    "ProviderUnavailable",
    "ReceiveContext",
    "Region",
    "RemoteAccessError",
    "RemoteRegion",
    "Request",
    "Security",
    "Selector",
    "Serializer",
    "Threading",
    "ThreadingError",
    "TimedOut",
    "Truncated",
    "UnknownPeer",
    "Unreachable",
    "WorkerLost",
    "__version__",
    "get_include",
    "getinfo",
    "job",
    "listen",
    "loop",
    "measure",
    "open",
    "parameters",
    "start",
    "wait_all",
    "wait_any",
]

# What a program with open(), tsend() and trecv() never asks for: imported when it is first named.
_LATER = {
    "COMPLETION_DTYPE": "ofipy._memory.records",
    "CollectiveRequest": "ofipy._operations.collective_start",
    "Executor": "ofipy.executor",
    "Group": "ofipy._objects.group",
    "Job": "ofipy.jobs.job",
    "OPERATION_DTYPE": "ofipy._memory.records",
    "SEGMENT_DTYPE": "ofipy._memory.records",
    "Selector": "ofipy._completion.selector",
    "job": "ofipy.jobs.join",
    "loop": "ofipy._completion.selector",
}


def _publish(thing: Any) -> Any:
    """Pickles that another version reads, tracebacks and help() say what is public, wherever it is defined."""
    if isinstance(thing, type):
        thing.__module__ = __name__
    return thing


for _name in __all__:
    _publish(globals().get(_name))


def get_include() -> str:
    """Folder of the C headers, for building a provider outside this package."""
    from pathlib import Path

    package = Path(__file__).parent
    installed = package / "include"
    # In an editable installation the package is the source tree.
    return str(installed if installed.is_dir() else package.parent / "native" / "include")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LATER:
        return _publish(getattr(import_module(_LATER[name]), name))
    if name == "measure":
        return import_module("ofipy.measure")
    if name == "__version__":
        from importlib.metadata import version

        return version("ofipy")
    raise AttributeError(f"module 'ofipy' has no attribute {name!r}")
