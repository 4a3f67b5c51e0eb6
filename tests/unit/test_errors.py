# SPDX-License-Identifier: BSD-3-Clause
"""The exception hierarchy, and codes of C as exceptions."""

import errno
import inspect
import pickle
import re

import pytest

import ofipy
from ofipy._base import errors
from ofipy._base.binding import Text, check, failure, ffi, lib, nanoseconds

CLASSES = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_is_a_documented_public_fabric_error(kind: type[ofipy.FabricError]) -> None:
    assert issubclass(kind, ofipy.FabricError)
    assert issubclass(kind, OSError)
    assert getattr(ofipy, kind.__name__) is kind
    assert inspect.getdoc(kind) != inspect.getdoc(kind.__base__)
    error = kind("what", operation="tsend")
    assert error.errno == kind.default_errno
    assert str(error) == "tsend: what"


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (ofipy.TimedOut, TimeoutError),
        (ofipy.ConnectionRefused, ConnectionRefusedError),
        (ofipy.Again, BlockingIOError),
        (ofipy.PeerLost, ConnectionResetError),
        (ofipy.IncompatiblePeer, ConnectionError),
        (ofipy.Unreachable, ConnectionError),
        (ofipy.InvalidArgument, ValueError),
        (ofipy.Closed, ValueError),
        (ofipy.ConfigError, ValueError),
        (ofipy.MissingKeyFile, FileNotFoundError),
        (ofipy.MissingKeyFile, ofipy.ConfigError),
        (ofipy.BufferTypeError, TypeError),
        (ofipy.NotSupported, NotImplementedError),
        (ofipy.NoMemory, MemoryError),
        (ofipy.UnknownPeer, LookupError),
        (ofipy.ProviderUnavailable, LookupError),
        (ofipy.AccessDenied, PermissionError),
    ],
)
def test_builtin_that_fits(kind: type[ofipy.FabricError], builtin: type[Exception]) -> None:
    with pytest.raises(builtin):
        raise kind("x")


def test_text_names_operation_peer_provider_and_remedy() -> None:
    error = ofipy.PeerLost(
        "it is gone", operation="tsend", peer="shm://a:1", provider="shm", remedy="start it"
    )
    assert str(error) == "tsend with shm://a:1 over shm: it is gone (start it)"
    assert str(ofipy.PeerLost("it is gone", peer="shm://a:1")) == "shm://a:1: it is gone"
    assert str(ofipy.PeerLost("it is gone", provider="shm")) == "shm: it is gone"
    assert str(ofipy.PeerLost("it is gone")) == "it is gone"


def test_repr_names_the_peer() -> None:
    error = ofipy.PeerLost("it is gone", operation="tsend", peer="shm://a:1", provider="shm")
    assert repr(error) == "PeerLost('it is gone', operation='tsend', peer='shm://a:1', provider='shm')"
    assert repr(ofipy.Canceled("over")) == "Canceled('over')"


@pytest.mark.parametrize(
    ("length", "room", "message"),
    [
        (10, 3, "the message of 10 bytes was longer than the receive buffer of 3 bytes"),
        (10, None, "the message of 10 bytes was longer than the receive buffer"),
        (0, 3, "the message was longer than the receive buffer of 3 bytes"),
        (None, None, "the message was longer than the receive buffer"),
    ],
)
def test_a_truncation_has_both_sizes(length: int | None, room: int | None, message: str) -> None:
    error = failure(lib.OFP_ETRUNC, operation="trecv", length=length, room=room)
    assert isinstance(error, ofipy.Truncated)
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert (each.message, each.length, each.room) == (message, length or None, room)


@pytest.mark.parametrize("kind", CLASSES)
def test_pickle(kind: type[ofipy.FabricError]) -> None:
    error = kind(
        "text", errno=5, provider="p", peer="q", operation="o", remedy="r", length=9, provider_error=7
    )
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (str(copy), copy.errno, copy.length, copy.provider_error) == (str(error), 5, 9, 7)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ETIMEDOUT, ofipy.TimedOut),
        (errno.ECANCELED, ofipy.Canceled),
        (errno.EBUSY, ofipy.Busy),
        (errno.EADDRINUSE, ofipy.AddressInUse),
        (errno.ENXIO, ofipy.FabricError),
        (lib.OFP_ETRUNC, ofipy.Truncated),
        (lib.OFP_ETOOLONG, ofipy.Truncated),
        (lib.OFP_EPEERLOST, ofipy.PeerLost),
        (lib.OFP_EPEERLEFT, ofipy.PeerLost),
        (lib.OFP_EPEERDIED, ofipy.PeerLost),
        (lib.OFP_EFORKED, ofipy.ForkedError),
        (lib.OFP_ETHREAD, ofipy.ThreadingError),
        (lib.OFP_EADDRNOTAVAIL, ofipy.UnknownPeer),
        (lib.OFP_EREMOTE, ofipy.RemoteAccessError),
        (lib.OFP_ENOREGION, ofipy.Closed),
        (lib.OFP_EEXHAUSTED, ofipy.NoMemory),
    ],
)
def test_codes(code: int, kind: type[ofipy.FabricError]) -> None:
    for signed in (code, -code):
        error = failure(signed, operation="op", provider="p")
        assert type(error) is kind
        assert error.errno == code
        assert error.message
        assert "Unknown error" not in error.message


@pytest.mark.parametrize(
    ("code", "reason"), [(lib.OFP_EPEERLEFT, "left"), (lib.OFP_EPEERDIED, "died"), (lib.OFP_EPEERLOST, None)]
)
def test_how_a_rank_ended(code: int, reason: str | None) -> None:
    error = failure(code)
    assert isinstance(error, ofipy.PeerLost)
    assert error.reason == reason
    assert pickle.loads(pickle.dumps(error)).reason == reason


def test_check() -> None:
    assert check(7, operation="op") == 7
    assert check(0, operation="op") == 0
    with pytest.raises(ofipy.Busy, match="op over p"):
        check(-errno.EBUSY, operation="op", provider="p")
    text = Text()
    ffi.buffer(text.pointer)[:5] = b"why\0\0"
    with pytest.raises(ofipy.AddressInUse, match=r"^op: why$"):
        check(-errno.EADDRINUSE, text=text, operation="op")


def test_every_error_code_of_the_header_has_a_text() -> None:
    for name in dir(lib):
        if re.fullmatch("OFP_E[A-Z]+", name):
            text = ffi.string(lib.ofp_strerror(getattr(lib, name))).decode()
            assert text
            assert "nknown" not in text, name


@pytest.mark.parametrize(("seconds", "expected"), [(None, -1), (0, 0), (1.5, 1_500_000_000), (1e30, 2**62)])
def test_nanoseconds(seconds: float | None, expected: int) -> None:
    assert nanoseconds(seconds) == expected


@pytest.mark.parametrize("seconds", [-0.1, float("nan"), float("-inf")])
def test_nanoseconds_refuses(seconds: float) -> None:
    with pytest.raises(ofipy.InvalidArgument):
        nanoseconds(seconds)
