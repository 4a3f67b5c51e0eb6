# SPDX-License-Identifier: BSD-3-Clause
"""Python objects as messages: pickled, with the arrays inside as pieces of their own.

An object is one message, so that it is matched, ordered, cancelled and awaited as any other. It begins with a head:

=====  =================================================
bytes
=====  =================================================
4      ``OFPO``
1      version, 1
1      0: a pickle; 1: of another serializer
2      zeros
4      buffers that follow, n
4      zeros
8      bytes of the pickle
8 n    bytes of each buffer; the highest bit: read-only
=====  =================================================

Behind it come the pickle and the buffers, each from a multiple of 16 bytes on. Little-endian. Whatever a peer says of
sizes is compared with the length of the message.
"""

import errno as codes
import pickle
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from ofipy._base.binding import lib
from ofipy._base.errors import AccessDenied, FabricError, IncompatiblePeer
from ofipy._base.flags import Flag, Op
from ofipy._base.renamed import room_timeout_from
from ofipy._base.versions import Versions
from ofipy._completion.request import MessageRequest, Request
from ofipy._discovery.av import PEER_ANY, own_peer
from ofipy._memory.buffers import make_record
from ofipy._operations import messaging
from ofipy._operations.initiator import Initiator, start
from ofipy._requests import MESSAGE

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = [
    "NotAnObject",
    "ObjectRequest",
    "Serializer",
    "object_bytes",
    "read_object",
    "recv_obj",
    "send_obj",
    "trecv_obj",
    "tsend_obj",
]

_HEAD = struct.Struct("<4sBBHIIQ")
_MAGIC, _VERSIONS = b"OFPO", Versions(1)
_PICKLE, _OTHER = 0, 1
_READ_ONLY = 1 << 63
_ALIGNMENT = 16
# Smaller ones cost less within the pickle than as pieces of their own.
_IN_BAND = 1024


class Serializer(Protocol):
    """What turns objects into bytes and back: a module such as ``cloudpickle`` or ``msgpack``, or an object like it."""

    def dumps(self, obj: Any, /) -> Any:
        """Return the object as bytes."""

    def loads(self, data: Any, /) -> Any:
        """Return the object of these bytes."""


class ObjectRequest(MessageRequest):
    """A receive of a Python object; its ``wait()`` returns that, its ``source`` and ``tag`` whose it is.

    Dropping or cancelling one loses no object, as of :class:`MessageRequest`.
    """

    __slots__ = ("_lack", "_object", "_serializer")

    _lack: tuple[str, str]
    _object: Any
    _serializer: Serializer | None

    if TYPE_CHECKING:

        def wait(self, timeout: float | None = None) -> Any: ...

        def __await__(self) -> Generator[Any, None, Any]: ...

    def _result(self) -> Any:
        if not hasattr(self, "_object"):
            message = super()._result()
            self._refuse_unproven()
            try:
                self._object = read_object(message.data, self._serializer)
            except NotAnObject as error:
                raise FabricError(str(error), errno=codes.EBADMSG, **self._context_of_sender()) from None
            except IncompatiblePeer as error:
                context = self._context_of_sender()
                raise IncompatiblePeer(error.message, remedy=error.remedy, **context) from None
        return self._object

    def _refuse_unproven(self) -> None:
        """A pickle does what its sender likes, so with a key it has to be somebody who has proven that.

        An object that was refused stays so, whatever is set when it is asked for again.
        """
        if not hasattr(self, "_lack"):
            lack = self._endpoint._domain._proof.lack()
            if lack is None:
                return
            self._lack = lack
        what, remedy = self._lack
        raise AccessDenied(
            f"{what}; the object was dropped unread",
            remedy=f"{remedy}; or receive bytes with trecv()",
            **self._context_of_sender(),
        )

    def _context_of_sender(self) -> dict[str, Any]:
        sender = self.source
        context = self._context()
        return context if sender is None else context | {"peer": self._endpoint._peer_text(int(sender))}


# sending


def tsend_obj(
    self: Initiator,
    obj: Any,
    peer: int | None = None,
    *,
    tag: int = 0,
    serializer: Serializer | None = None,
    complete: str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> Request:
    """Send a Python object.

    Arrays inside it, and whatever else pickle protocol 5 knows as a buffer, leave from where they are: they may not be
    changed until the request has finished.

    Parameters
    ----------
    obj : object
        What to send.
    peer, tag, complete, incarnation, room_timeout, timeout
        As of :meth:`tsend`.
    serializer : module or object with ``dumps`` and ``loads``, optional
        Such as ``msgpack``, which the other side then has to name too, or ``cloudpickle``, whose pickles it reads
        without. Default: :mod:`pickle`.

    Returns
    -------
    Request
        As of :meth:`tsend`.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    parts = _pieces(self, obj, serializer)
    return messaging.tsend(
        self,
        parts,
        peer,
        tag=tag,
        complete=complete,
        incarnation=incarnation,
        room_timeout=room_timeout,
    )


def send_obj(
    self: Initiator,
    obj: Any,
    peer: int | None = None,
    *,
    serializer: Serializer | None = None,
    complete: str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> Request:
    """Send a Python object in a message without a tag; otherwise as :meth:`tsend_obj`."""
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return messaging.send(
        self,
        _pieces(self, obj, serializer),
        peer,
        complete=complete,
        incarnation=incarnation,
        room_timeout=room_timeout,
    )


# receiving


def trecv_obj(
    self: Initiator,
    peer: int | None = None,
    *,
    tag: int = 0,
    ignore: int = 0,
    serializer: Serializer | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> ObjectRequest:
    """Receive a Python object that :meth:`tsend_obj` has sent.

    Arrays in it lie in the memory of the message, and keep it.

    .. warning::
        Who can send you a pickle can make your program do anything. While a key is set, objects are taken only by
        endpoints whose peers have proven it (``tcp`` and ``link``, opened after it was set) or are processes of the
        same user (``shm``); where none is set, from whoever can reach the endpoint.

    Parameters
    ----------
    peer, tag, ignore, incarnation, room_timeout, timeout
        As of :meth:`trecv`.
    serializer : module or object with ``dumps`` and ``loads``, optional
        As the sender's. Default: :mod:`pickle`.

    Returns
    -------
    ObjectRequest
        Its ``wait()`` returns the object, or raises: :class:`~ofipy.AccessDenied` where peers have not proven the key
        that is set now (the message is consumed, and not unpickled),
        :class:`~ofipy.FabricError` with errno ``EBADMSG`` for a message that is no object, and what the serializer
        raises.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return _receive(self, Op.TRECV, peer, tag, ignore, serializer, room_timeout, incarnation)


def recv_obj(
    self: Initiator,
    peer: int | None = None,
    *,
    serializer: Serializer | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> ObjectRequest:
    """Receive a Python object that :meth:`send_obj` has sent; otherwise as :meth:`trecv_obj`."""
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return _receive(self, Op.RECV, peer, 0, 0, serializer, room_timeout, incarnation)


def _receive(
    self: Initiator,
    op: Op,
    peer: int | None,
    tag: int,
    ignore: int,
    serializer: Serializer | None,
    timeout: float | None,
    incarnation: int | None,
) -> ObjectRequest:
    name = op.name.lower()
    number = PEER_ANY if peer is None else own_peer(self._peers.vector, peer, name)
    record = make_record(
        op,
        None,
        peer=number,
        tag=tag,
        ignore=ignore,
        flags=int(Flag.HOLD | Flag.CLAIM),
        incarnation=incarnation,
    )
    request: ObjectRequest = start(self, ObjectRequest, MESSAGE, record, None, name, number, timeout)
    request._serializer = serializer
    return request


# form of a message


class NotAnObject(Exception):
    """The bytes of a message are no object, or one of another serializer."""


def object_bytes(obj: Any) -> bytes:
    """The message of an object, in one piece."""
    return b"".join(_packed(obj, None, 0))


def _pieces(self: Initiator, obj: Any, serializer: Serializer | None) -> list[Any]:
    """The message of an object, in pieces."""
    return _packed(obj, serializer, _room(self))


def _packed(obj: Any, serializer: Serializer | None, room: int) -> list[Any]:
    """The message of an object; up to `room` buffers are pieces of their own."""
    buffers: list[memoryview] = []

    def out_of_band(buffer: pickle.PickleBuffer) -> bool:
        # What is not one piece of memory stays within the pickle.
        try:
            raw = buffer.raw()
        except BufferError:
            return True
        if raw.nbytes >= _IN_BAND:
            buffers.append(raw)
        return raw.nbytes < _IN_BAND

    if _is_pickle(serializer):
        dumps: Any = pickle.dumps if serializer is None else serializer.dumps
        kind, body = _PICKLE, dumps(obj, protocol=5, buffer_callback=out_of_band)
    else:
        assert serializer is not None
        kind, body = _OTHER, serializer.dumps(obj)
    sizes = [raw.nbytes | (_READ_ONLY if raw.readonly else 0) for raw in buffers]
    head = _HEAD.pack(_MAGIC, _VERSIONS.newest, kind, 0, len(buffers), 0, len(body))
    run = [head, struct.pack(f"<{len(sizes)}Q", *sizes), body]
    return list(_joined(run, buffers, room))


def _is_pickle(serializer: Serializer | None) -> bool:
    """Whether it makes pickles, as cloudpickle does: they may have buffers beside them, and any side reads them."""
    return serializer is None or serializer.loads is pickle.loads


def _room(self: Initiator) -> int:
    """How many buffers may be pieces of their own, with what is copied before, between and behind them."""
    return (min(self._domain.info.segment_limit, int(lib.OFP_SEGMENT_LIMIT)) - 1) // 2


def _joined(run: list[Any], buffers: list[memoryview], room: int) -> Iterator[Any]:
    """The largest buffers as they are, and all else copied together."""
    largest = set(sorted(range(len(buffers)), key=lambda place: -buffers[place].nbytes)[:room])
    length = sum(map(len, run))
    for place, raw in enumerate(buffers):
        padding = -length % _ALIGNMENT
        run.append(bytes(padding))
        length += padding + raw.nbytes
        if place in largest:
            yield b"".join(run)
            yield raw
            run = []
        else:
            run.append(raw)
    if run:
        yield b"".join(run)


def read_object(data: bytearray, serializer: Serializer | None = None) -> Any:
    """The object of a message. Whoever calls this has made sure that its sender is trusted.

    Raises
    ------
    NotAnObject
        With what is wrong with it.
    IncompatiblePeer
        When it is of another version.
    Exception
        What the serializer raises.
    """
    whole = memoryview(data)
    kind, body, buffers = _taken_apart(whole)
    if (kind == _PICKLE) != _is_pickle(serializer):
        sent = "with another serializer" if kind == _OTHER else "as a pickle, not with that serializer"
        raise NotAnObject(f"the object was sent {sent}")
    if serializer is None or kind == _PICKLE:
        return pickle.loads(body, buffers=buffers)
    return serializer.loads(bytes(body))


def _taken_apart(whole: memoryview) -> tuple[int, memoryview, list[memoryview]]:
    size = whole.nbytes
    if size < _HEAD.size:
        raise NotAnObject(f"{size} bytes, which are no object")
    magic, version, kind, _zeros, count, _more, length = _HEAD.unpack_from(whole)
    if magic != _MAGIC or not version:
        raise NotAnObject(f"{size} bytes, which are no object")
    if not _VERSIONS.include_one_of(Versions(version)):
        raise _VERSIONS.incompatible(Versions(version), "objects with their buffers")
    if kind not in (_PICKLE, _OTHER):
        raise NotAnObject(f"{size} bytes, which are no object")
    start = _HEAD.size + 8 * count
    if start > size or length > size - start:
        raise NotAnObject(f"an object that claims more than its {size} bytes")
    body, end = whole[start : start + length], start + length
    buffers = []
    for entry in struct.unpack_from(f"<{count}Q", whole, _HEAD.size):
        start = end + -end % _ALIGNMENT
        end = start + (entry & ~_READ_ONLY)
        if end > size:
            raise NotAnObject(f"an object that claims more than its {size} bytes")
        buffers.append(whole[start:end].toreadonly() if entry & _READ_ONLY else whole[start:end])
    if end != size:
        raise NotAnObject(f"an object with {size - end} bytes too many")
    return kind, body, buffers
