# SPDX-License-Identifier: BSD-3-Clause
"""Keyword arguments that are handed on: typed, and a misspelt one told by the function that was called."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest
from public_methods import methods

import ofipy
from ofipy._objects.keywords import ConnectOptions, EndpointOptions, OpenOptions

HANDS_ON = [
    (ofipy.open, OpenOptions),
    (ofipy.Domain.endpoint, EndpointOptions),
    (ofipy.ConnectionRequest.accept, EndpointOptions),
    (ofipy.PassiveEndpoint.connect, ConnectOptions),
]


def keyword_names(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}


def test_the_options_are_those_of_an_endpoint() -> None:
    options = set(EndpointOptions.__annotations__) | {"request"}
    assert options == keyword_names(ofipy.Endpoint.__init__)
    assert set(OpenOptions.__annotations__) < options


@pytest.mark.parametrize(("function", "kind"), HANDS_ON)
def test_what_is_handed_on_is_typed(function: Callable[..., Any], kind: type) -> None:
    (rest,) = (
        each for each in inspect.signature(function).parameters.values() if each.kind is each.VAR_KEYWORD
    )
    assert rest.annotation == typing.Unpack[kind]  # type: ignore[misc]


def test_nothing_else_takes_any_keyword() -> None:
    classes = [thing for name in ofipy.__all__ if inspect.isclass(thing := getattr(ofipy, name))]
    members = [
        member
        for thing in classes
        if not issubclass(thing, BaseException)
        for name, member in methods(thing)
        if not name.startswith("_") and "ofipy" in member.__module__
    ]
    functions = [thing for name in ofipy.__all__ if inspect.isfunction(thing := getattr(ofipy, name))]
    taking = {
        function
        for function in (*members, *functions)
        for each in inspect.signature(function).parameters.values()
        if each.kind is each.VAR_KEYWORD
    }
    # The arguments of submit() are those of the call that it submits.
    assert taking == {ofipy.Executor.submit, *(function for function, _ in HANDS_ON)}


@pytest.mark.parametrize(
    ("wrong", "meant"), [("cap", "caps"), ("provide", "provider"), ("unexpected_sise", "unexpected_size")]
)
def test_a_misspelt_keyword_of_open(wrong: str, meant: str) -> None:
    said = rf"^ofipy\.open\(\) got an unexpected keyword argument '{wrong}'; did you mean '{meant}'\?$"
    with pytest.raises(TypeError, match=said):
        ofipy.open(**{wrong: "x"})


def test_a_misspelt_keyword_of_a_domain_and_of_a_request() -> None:
    info = ofipy.getinfo(provider="tcp", ep_type="msg")[0]
    with ofipy.Fabric(info) as fabric, fabric.domain() as domain:
        with pytest.raises(
            TypeError, match=r"^ofipy\.Domain\.endpoint\(\) .*'completes'; did you mean 'complete'"
        ):
            domain.endpoint(completes="transmit")  # type: ignore[call-arg]
        listener = domain.passive_endpoint()
        with pytest.raises(TypeError, match=r"^ofipy\.PassiveEndpoint\.connect\(\) .*'service'"):
            listener.connect(listener.address, service=1)  # type: ignore[call-arg]
        request = ofipy.ConnectionRequest(listener, 1, b"", listener.address)
        with pytest.raises(
            TypeError, match=r"^ofipy\.ConnectionRequest\.accept\(\) .*'dta'; did you mean 'data'"
        ):
            request.accept(dta=b"")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"'nonsense'$"):
            request.accept(nonsense=1)  # type: ignore[call-arg]


def test_signatures_can_be_read() -> None:
    """No number that stands for somebody, and no union of numpy's written out."""
    for name in ofipy.__all__:
        kind = getattr(ofipy, name)
        for _, method in methods(kind) if isinstance(kind, type) else ():
            signature = str(inspect.signature(method))
            assert "42949672" not in signature, method
            assert "_dtype_like" not in signature, method
