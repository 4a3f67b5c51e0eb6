# SPDX-License-Identifier: BSD-3-Clause
"""Fabric and domain: a network, and the use of one device on it."""

import errno
import math
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from ofipy._base import config
from ofipy._base.arrays import np
from ofipy._base.atomic_types import AtomicKind, AtomicOp, Datatype, parse_datatype, parse_kind
from ofipy._base.binding import Text, check, drain_log, ffi, lib
from ofipy._base.encryption import check_encryption
from ofipy._base.errors import InvalidArgument
from ofipy._base.flags import Access, Progress, Threading, parse_enum, parse_flags
from ofipy._base.key_file import Proof
from ofipy._base.lifetime import Handle, Opening, Resource
from ofipy._base.limits import limit, whole_number
from ofipy._base.spelling import warn_of_misspelt
from ofipy._completion.counter import Counter, RegionClass, region_counters
from ofipy._completion.cq import CompletionQueue
from ofipy._completion.eq import EventQueue
from ofipy._discovery import hooks as hook_lists
from ofipy._discovery import providers
from ofipy._discovery.av import AddressVector
from ofipy._discovery.info import Info, from_record
from ofipy._memory.allocation import DomainMemory
from ofipy._memory.records import operations
from ofipy._memory.region import Region, check_rights, register
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.keywords import EndpointOptions, refuse_unknown
from ofipy._objects.passive import ConnectionRequest, PassiveEndpoint
from ofipy._objects.receive_context import ReceiveContext
from ofipy._operations import deferred

if TYPE_CHECKING:
    import numpy.typing as npt

    from ofipy._memory.accepted import Memory

__all__ = ["Domain", "Fabric"]

_BYTES_MAX = 2**63 - 1


class Fabric(Resource):
    """One network, as one provider sees it.

    Parameters
    ----------
    info : Info
        One of the answers of :func:`~ofipy.getinfo`.
    hooks : str or iterable of str, optional
        Hooks with their options, that look at what its endpoints do or interfere, the first nearest to the application:
        ``["trace:file=t.json", "fault:fail=0.01"]``, or both in one text with a semicolon between them. Default: what
        ``OFIPY_HOOKS`` says; an empty text or list: none.

    Raises
    ------
    InvalidArgument
        When there is no such hook, option or value; the message says what there is.
    ConfigError
        When ``OFIPY_HOOKS`` names what there is not.
    """

    __slots__ = ("_hooks", "_info")

    _warns = False  # it holds domains only, and those warn

    def __init__(self, info: Info, *, hooks: str | Iterable[str] | None = None) -> None:
        self._info = info
        self._hooks = hook_lists.checked(hooks)
        self._own(Handle(info, lambda _: None, (), "fabric"))

    @property
    def info(self) -> Info:
        """What it was made from."""
        return self._info

    def domain(
        self,
        *,
        threading: Threading | Literal["safe", "completion", "domain"] = "safe",
        progress: Progress | Literal["manual", "auto"] = "manual",
    ) -> "Domain":
        """Open a domain.

        Parameters
        ----------
        threading : Threading or str
            ``safe``, or ``completion``: any thread may call, at the price of an uncontended lock. ``domain``: only the
            thread that opens it (see :meth:`Domain.adopt`).
        progress : Progress or str
            ``manual``: messages move while this program reads, waits or tests. ``auto``: a helper thread in C
            moves them too when the program does not.

        Raises
        ------
        ConfigError
            When a variable of the environment has a value that its parameter cannot have.
        FabricError
            When the provider refuses, with its reason.
        """
        return Domain(
            self, threading=parse_enum(Threading, threading), progress=parse_enum(Progress, progress)
        )

    def __repr__(self) -> str:
        return f"<Fabric {self._info.fabric} of {self._info.provider}>"


class Domain(Resource):
    """The use of one device, made by :meth:`Fabric.domain`; endpoints, queues and memory belong to it."""

    __slots__ = ("_began", "_fabric", "_info", "_memory", "_proof", "_threading")

    def __init__(self, fabric: Fabric, *, threading: Threading, progress: Progress) -> None:
        info = fabric.info
        fabric._pointer("domain")
        provider = providers.load(info.provider)
        config.check_environment()
        self._proof = Proof(info.peer_proof)
        check_encryption(info.encryption)
        warn_of_misspelt(providers.not_loaded)
        record = ffi.new("struct ofp_info *")
        ffi.buffer(record)[:] = info._record
        hooks = ffi.new("char[]", fabric._hooks.encode())
        attributes = ffi.new(
            "struct ofp_domain_attr *",
            {"threading": threading.value, "progress": progress.value, "hooks": hooks},
        )
        result, text = ffi.new("struct ofp_domain **"), Text()
        drain_log()
        began = time.monotonic()  # whether it has the key of a job that is joined later
        with Opening(lambda: result[0], lib.ofp_domain_retire, lib.ofp_domain_free) as opening:
            opened = lib.ofp_domain_open(provider.handle, record, attributes, result, text.pointer, text.size)
            check(opened, text=text, operation="open a domain", provider=info.provider)
            self._fabric = fabric
            self._began = began
            self._threading = threading
            pointer = opening.hold()
            found = from_record(lib.ofp_domain_info(pointer)[0])
            self._info = info if found._record == info._record else found
            self._memory = DomainMemory(pointer, info.provider)
            self._own(
                Handle(
                    pointer,
                    self._memory.close_domain,
                    (fabric._core,),
                    "domain",
                    opening=opening,
                    progress=lib.ofp_domain_progress,
                )
            )

    @property
    def fabric(self) -> Fabric:
        """What it was opened from."""
        return self._fabric

    @property
    def info(self) -> Info:
        """Capabilities and limits; some of the limits of a libfabric show only when a domain is open."""
        return self._info

    @property
    def provider(self) -> str:
        """Name of the provider."""
        return self._fabric.info.provider

    def cq(self, *, size: int | None = None, format: str = "tagged") -> "CompletionQueue[Domain]":
        """Open a completion queue.

        Parameters
        ----------
        size : int, optional
            Completions that it holds before it allocates more memory, 1 to 2**24; it never loses one. Default:
            ``OFIPY_CQ_SIZE``.
        format : str
            ``context``, ``msg``, ``data`` or ``tagged``, as libfabric names them. Every queue writes whole
            records, so all four are the same here.
        """
        if format not in ("context", "msg", "data", "tagged"):
            raise InvalidArgument(f"format={format!r}; known are context, msg, data and tagged")
        limit("size", size, of="completions")
        return CompletionQueue(self, size=size)

    def av(self, *, auto_insert: bool = True) -> "AddressVector[Domain]":
        """Open an address vector.

        Parameters
        ----------
        auto_insert : bool
            Unknown senders get an entry when they connect, so that their messages can be answered. Of those that have
            left, the last 1,024 stay.
        """
        return AddressVector(self, auto_insert=auto_insert)

    def event_queue(self, *, size: int | None = None) -> "EventQueue[Domain]":
        """Open an event queue.

        Parameters
        ----------
        size : int, optional
            Events up to which the program may write its own, 1 to 2**24; those of the core go beyond. Default:
            1024.
        """
        return EventQueue(self, size=size)

    def counter(self, *, events: Literal["completions", "bytes"] = "completions") -> "Counter[Domain]":
        """Open a counter.

        Parameters
        ----------
        events : str
            What its value counts: ``completions``, or ``bytes`` of them.
        """
        return Counter(self, events=events)

    def receive_context(
        self,
        *,
        cq: "CompletionQueue | None" = None,
        av: "AddressVector | None" = None,
        unexpected_size: int | None = None,
        min_multi_recv: int | None = None,
    ) -> "ReceiveContext[Domain]":
        """Open a receive context for several endpoints: ``domain.endpoint(rx=context)``.

        Parameters
        ----------
        cq : CompletionQueue, optional
            Where receives end that took no message. Default: one of its own.
        av : AddressVector, optional
            The peers of all its endpoints. Default: one of its own.
        unexpected_size : int, optional
            Bytes that it keeps of messages which nobody has received, 256 for each and payload above 64 bytes; 1 to
            2**40. Default: ``OFIPY_UNEXPECTED_SIZE``.
        min_multi_recv : int, optional
            Bytes: multi-receive buffers with less room left are released, 1 to 2**40. Default: 64.

        Raises
        ------
        NotSupported
            When the provider matches receives itself.
        """
        return ReceiveContext(
            self, cq=cq, av=av, unexpected_size=unexpected_size, min_multi_recv=min_multi_recv
        )

    def endpoint(
        self, *, request: "ConnectionRequest | None" = None, **options: Unpack[EndpointOptions]
    ) -> "Endpoint[Domain]":
        """Make an endpoint; :meth:`Endpoint.enable` opens it. Options as of :class:`Endpoint`."""
        refuse_unknown(Domain.endpoint, options, EndpointOptions)
        return Endpoint(self, request=request, **options)

    def passive_endpoint(
        self,
        *,
        service: int | str | None = None,
        eq: "EventQueue | None" = None,
        backlog: int | None = None,
    ) -> "PassiveEndpoint[Domain]":
        """Open a listener for endpoints of type ``msg``; :meth:`PassiveEndpoint.listen` lets requests in.

        Parameters
        ----------
        service, eq, backlog
            As of :class:`PassiveEndpoint`.

        Raises
        ------
        AddressInUse
            When another one has the service.
        NotSupported
            When the domain's endpoints are of another type.
        """
        return PassiveEndpoint(self, service=service, eq=eq, backlog=backlog)

    def register(
        self,
        buffer: "Memory",
        *,
        access: Access | str | Iterable[Access | str] = Access.LOCAL,
        key: int | None = None,
        counters: "Mapping[RegionClass, Counter] | None" = None,
    ) -> Region:
        """Register memory of the program.

        Parameters
        ----------
        buffer : object with the buffer protocol
            Contiguous; writable unless `access` allows no writing. It is exported until the region is closed.
        access : Access or str
            Default: everything that this process may do itself. ``remote_read`` and ``remote_write`` let peers in
            who have :attr:`Region.remote`, and ask for no more. ``device_atomic`` (a capability) lets in the
            atomic operations of their devices, and shuts out those that this process would carry out.
        key : int, optional
            By which peers reach it, unique in the domain. Default: a random one, which nobody can guess.
        counters : mapping of str to Counter, optional
            What counts the accesses of peers to this memory, atomics too: by ``remote_read`` and ``remote_write``
            (fi_mr(3), fi_mr_bind). A counter that is closed ceases to count.

        Raises
        ------
        BufferTypeError
            When the buffer does not fit, or holds Python objects.
        InvalidArgument
            When the key is in use, or the transport makes keys itself; when a counter is another domain's, or has
            nothing to count.
        NotSupported
            When the provider cannot count (it lacks the capability ``rma_event``), or has no ``device_atomic``.
        """
        rights = parse_flags(Access, access)
        return register(self, buffer, rights, key, region_counters(self, counters, rights, "register"))

    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: "npt.DTypeLike" = "uint8",
        *,
        access: Access | str | Iterable[Access | str] = Access.LOCAL,
        counters: "Mapping[RegionClass, Counter] | None" = None,
    ) -> "npt.NDArray[Any]":
        """Allocate an array in memory that the provider moves best; it starts as zeros.

        The memory stays until the last view of the array is gone, also when the domain is closed before.

        Parameters
        ----------
        shape : int or tuple of int
            As of :func:`numpy.empty`.
        dtype : dtype
            Without Python objects.
        access : Access or str
            What it may be used for.
        counters : mapping of str to Counter, optional
            As of :meth:`register`.

        Raises
        ------
        NoMemory
            With the remedy, when the machine cannot back it.
        """
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise InvalidArgument(
                f"dtype {kind} holds Python objects, which cannot be sent",
                remedy="choose a dtype of numbers or bytes",
            )
        sizes = shape if isinstance(shape, list | tuple) else (shape,)
        dimensions = [whole_number("shape", size, 0, _BYTES_MAX, operation="empty") for size in sizes]
        count = math.prod(dimensions)
        whole_number("size", count * kind.itemsize, 0, _BYTES_MAX, "bytes", operation="empty")
        self._pointer("empty")
        rights = parse_flags(Access, access)
        check_rights(self, rights, "empty")
        memory = self._memory.allocate(
            max(count * kind.itemsize, 1), rights, region_counters(self, counters, rights, "empty")
        )
        return np.frombuffer(memory, dtype=kind, count=count).reshape(dimensions)

    def region(self, array: "npt.NDArray[Any]") -> Region:
        """The region of an array of :meth:`empty`, or of a contiguous part of one.

        Raises
        ------
        InvalidArgument
            When it is other memory; :meth:`register` takes that.
        """
        memory = ffi.from_buffer(array)
        address = int(ffi.cast("uintptr_t", memory))
        found = self._memory.find(address, array.nbytes)
        if found is None:
            raise InvalidArgument(
                "the array is not memory of this domain", remedy="domain.register(array) takes any"
            )
        offset = address - found.address
        return Region(
            self,
            found.number,
            offset,
            array.nbytes,
            start=offset,
            access=found.access,
            key=found.key,
            remote_base=found.remote_base,
            ways=found.ways,
            keep=memory,
            core=None,
        )

    def atomic_valid(
        self,
        op: AtomicOp | str,
        dtype: "Datatype | npt.DTypeLike",
        *,
        kind: AtomicKind = "base",
        device: bool = False,
    ) -> int:
        """Ask whether endpoints of this domain carry out an atomic operation (fi_query_atomic(3)).

        Parameters
        ----------
        op : AtomicOp or str
            What it does to its target.
        dtype : Datatype or dtype
            Type of an element.
        kind : str
            ``base``; ``fetch`` returns what the target held before; ``compare`` takes a compare operand too.
        device : bool
            Ask of the device's own, on memory registered with ``access="device_atomic"``.

        Returns
        -------
        int
            Elements of the longest vector, 0 when there is no such operation.

        Raises
        ------
        BufferTypeError
            When no datatype is like the dtype.
        InvalidArgument
            When there is no operation or kind of that name.
        """
        count = ffi.new("uint64_t *")
        result = lib.ofp_atomic_query(
            self._pointer("atomic_valid"),
            parse_kind(kind) | (lib.OFP_DEVICE_ATOMIC if device else 0),
            parse_enum(AtomicOp, op),
            parse_datatype(dtype),
            count,
        )
        if result == -errno.EOPNOTSUPP:
            return 0
        check(result, operation="atomic_valid", provider=self.provider)
        return int(count[0])

    def operations(self, count: int) -> "np.ndarray[Any, np.dtype[np.void]]":
        """Make an array of `count` operation records in C memory, all zero, of dtype OPERATION_DTYPE."""
        return operations(count)

    defer = deferred.defer
    defer_reduce = deferred.defer_reduce
    flush_work = deferred.flush_work

    def adopt(self) -> None:
        """Bind the domain to the calling thread (``threading="domain"``), away from the one before."""
        check(lib.ofp_domain_adopt(self._pointer("adopt")), operation="adopt", provider=self.provider)

    def progress(self) -> int:
        """Move messages of every endpoint once. Returns the number of events handled."""
        return check(
            lib.ofp_domain_progress(self._pointer("progress")), operation="progress", provider=self.provider
        )

    def __enter__(self) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<Domain {self.info.domain} of {self.provider}{' closed' if self.closed else ''}>"
