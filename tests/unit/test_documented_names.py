# SPDX-License-Identifier: BSD-3-Clause
"""Every name in the pages that looks like ours is there: attributes, keywords, variables, options, C, files.

What a word before a dot stands for is :data:`RECEIVERS`. What looks like ours and is somebody else's is listed by
page at the end, so that a name that goes away is found wherever it is written.
"""

import builtins
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import click
import pytest
from foreign_names import FOREIGN
from public_methods import function_behind

import ofipy
from fabtests.cli import fabtests
from ofipy._discovery import hooks, providers
from ofipy.cli.commands import ofipy_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "providers").glob("*/README.md")),
]

# What a word before a dot stands for in the pages.
RECEIVERS: dict[str, tuple[type, ...]] = {
    "address": (ofipy.Address,),
    "av": (ofipy.AddressVector,),
    "client": (ofipy.Endpoint,),
    "connection": (ofipy.Connection,),
    "context": (ofipy.ReceiveContext,),
    "counter": (ofipy.Counter,),
    "cq": (ofipy.CompletionQueue,),
    "domain": (ofipy.Domain,),
    "done": (ofipy.CompletionBatch,),
    "endpoint": (ofipy.Endpoint,),
    "ep": (ofipy.Endpoint,),
    "eq": (ofipy.EventQueue,),
    "error": (ofipy.FabricError, ofipy.ConnectionRefused, ofipy.NotSent, ofipy.Truncated, ofipy.WorkerLost),
    "event": (ofipy.Event,),
    "events": (ofipy.EventQueue,),
    "executor": (ofipy.Executor,),
    "fabric": (ofipy.Fabric,),
    "info": (ofipy.Info,),
    "listener": (ofipy.PassiveEndpoint,),
    "message": (ofipy.Message,),
    "msg": (ofipy.Message,),
    "peer": (ofipy.Peer,),
    "region": (ofipy.Region,),
    "remote": (ofipy.RemoteRegion,),
    "request": (ofipy.Request, ofipy.ConnectionRequest),
    "server": (ofipy.Endpoint,),
    "work": (ofipy.DeferredWork,),
}


# --------------------------------------------------------------------------------------------------------- pages


@dataclass(frozen=True, slots=True)
class Code:
    """A piece of code of a page."""

    page: str
    line: int
    text: str
    language: str
    """Of a block; empty for what stands within a line."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text if not self.language else self.language + ' block'}"


def codes(page: Path) -> Iterator[Code]:
    """Blocks and spans of a page."""
    name, text = str(page.relative_to(ROOT)), page.read_text("utf-8")

    def line_of(position: int) -> int:
        return text.count("\n", 0, position) + 1

    blocks = list(re.finditer(r"^```+(\S*)[^\n]*\n(.*?)^```+$", text, re.MULTILINE | re.DOTALL))
    for block in blocks:
        for number, line in enumerate(block[2].splitlines()):
            yield Code(name, line_of(block.start(2)) + number, line, block[1] or "text")
    rest = text
    for block in reversed(blocks):
        rest = rest[: block.start()] + re.sub(r"[^\n]", " ", block[0]) + rest[block.end() :]
    for line in re.finditer(r"^    (?! *[-*|]).*$", rest, re.MULTILINE):
        yield Code(name, line_of(line.start()), line[0], "indented")
    for span in re.finditer(r"(?<![`\w}])(`+)(?!`)(.+?)(?<!`)\1(?!`)", rest, re.DOTALL):
        yield Code(name, line_of(span.start()), " ".join(span[2].split()), "")


@cache
def every_code() -> tuple[Code, ...]:
    return tuple(code for page in PAGES for code in codes(page))


def complain(found: Iterator[tuple[Code, str]]) -> None:
    lines = [f"{code}\n    {what}" for code, what in found if (code.page, what) not in FOREIGN]
    assert not lines, "\n".join(lines)


# ---------------------------------------------------------------------------------------------------- attributes


GROUPS = {hooks.GROUP, providers.GROUP}
"""Of entry points."""


def loggers(page: str) -> set[str]:
    """Names that the library logs under, for the pages that speak of them."""
    if page == "docs/how-to/trace-and-inject-faults.md":
        assert 'OFP_LOG_DEBUG, "trace"' in (ROOT / "native" / "hooks" / "trace.c").read_text()
        return {"ofipy.trace"}
    if page not in ("docs/how-to/debug.md", "docs/how-to/configure.md"):
        return set()
    assert 'logger("ofipy.config")' in (ROOT / "ofipy" / "_base" / "config.py").read_text()
    assert 'OFP_LOG_WARNING, "core"' in (ROOT / "native" / "src" / "base" / "param.c").read_text()
    return {"ofipy.config", "ofipy.core", *(f"ofipy.{name}" for name in providers.known())}


def has(kind: type, name: str) -> bool:
    """Whether objects of a class have an attribute; some get theirs in the constructor."""
    if hasattr(kind, name) or name in getattr(kind, "__annotations__", {}):
        return True
    return issubclass(kind, BaseException) and hasattr(kind("x"), name)


def kinds_behind(kind: type, name: str) -> tuple[type, ...]:
    """What an attribute, or the result of a method, is an object of; () where that is not ours."""
    member = inspect.getattr_static(kind, name, None)
    function = member.fget if isinstance(member, property) else function_behind(member)
    if not inspect.isfunction(function):
        return ()
    said = inspect.signature(function).return_annotation
    name = said.__name__ if inspect.isclass(said) else str(said).split(" | ")[0].strip("\"'")
    found = getattr(ofipy, name, None)
    return (found,) if inspect.isclass(found) else ()


def follow(kinds: tuple[type, ...], names: list[str]) -> str | None:
    """The first of these names that is not there."""
    for name in names:
        if not kinds:
            return None
        having = [kind for kind in kinds if has(kind, name)]
        if not having:
            return name
        kinds = tuple(behind for kind in having for behind in kinds_behind(kind, name))
    return None


CHAIN = r"((?:\.[A-Za-z_]\w*(?:\(\))?)+)"


def wrong_attributes(code: Code) -> Iterator[str]:
    for match in re.finditer(rf"(?<![\w./-])ofipy{CHAIN}(?![\w/]|\.\w)", code.text):
        dotted = "ofipy" + match[1].replace("()", "")
        if dotted not in loggers(code.page) | GROUPS and not is_there(dotted):
            yield dotted
    for match in re.finditer(rf"(?<![\w./>\"'-])([a-z]\w*){CHAIN}", code.text):
        names = match[2].replace("()", "").split(".")[1:]
        kinds = RECEIVERS.get(match[1]) if names[0] not in ("c", "h", "py") else None
        if kinds and (missing := follow(kinds, names)):
            yield f"{match[1]}.{missing}"
    for match in re.finditer(rf"(?<![\w./>\"'-])([A-Z]\w+){CHAIN}", code.text):
        kind = getattr(ofipy, match[1], None)
        if inspect.isclass(kind) and (missing := follow((kind,), match[2].replace("()", "").split(".")[1:])):
            yield f"{match[1]}.{missing}"


def is_there(dotted: str) -> bool:
    """Whether a dotted name is a module of ours, or something in one."""
    names = dotted.split(".")
    for end in range(len(names), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(names[:end]))
        except ImportError:
            continue
        for position, name in enumerate(names[end:], end):
            if inspect.isfunction(thing):
                thing = get_type_hints(thing)["return"]
            if inspect.isclass(thing):
                return follow((thing,), names[position:]) is None
            if not hasattr(thing, name):
                return False
            thing = getattr(thing, name)
        return True
    return False


def test_attributes() -> None:
    complain((code, what) for code in every_code() for what in wrong_attributes(code))


# ------------------------------------------------------------------------------------------------------ keywords


@cache
def callables() -> dict[str, list[set[str]]]:
    """Names of what can be called in our interface, each with the keywords of everything that is called so."""
    found: dict[str, list[set[str]]] = {}

    def add(name: str, function: Any) -> None:
        names: set[str] = set()
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError:  # of a built-in base
            parameters = {}.values()
        for each in parameters:
            names |= extra_keywords(each) if each.kind is each.VAR_KEYWORD else {each.name}
        found.setdefault(name, []).append(names)

    for name in ofipy.__all__:
        thing = getattr(ofipy, name)
        if inspect.isclass(thing):
            add(name, thing)
            for member, value in inspect.getmembers(thing, inspect.isroutine):
                function = function_behind(value)
                if not member.startswith("__") and "ofipy" in str(getattr(function, "__module__", "")):
                    add(member, function)
        elif inspect.isfunction(thing):
            add(name, thing)
    for name in ofipy.measure.__all__:
        add(name, getattr(ofipy.measure, name))
    return found


def extra_keywords(rest: inspect.Parameter) -> set[str]:
    """What `**rest` takes."""
    args = typing.get_args(rest.annotation)
    return set(args[0].__annotations__) if args else set()


def arguments(text: str, start: int) -> str:
    """What stands between the parenthesis at `start` and the one that closes it; deeper ones are left out."""
    depth, inner = 0, []
    for character in text[start:]:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if depth == 0:
            break
        if depth == 1:
            inner.append(character)
    return "".join(inner)[1:]


@cache
def options_of_hooks() -> set[str]:
    return {option.name for hook in hooks.every() for option in hook.options}


KEYWORD = r"(?<![\w.$/-])([a-z_]\w*)=(?!=)"


def wrong_keywords(code: Code) -> Iterator[str]:
    if code.language not in ("", "python", "indented"):
        return
    text, known = re.sub(r'"[^"]*"', '""', code.text), callables()  # lists of hooks have options of their own
    for match in re.finditer(r"([A-Za-z_]\w*)\(", text):
        signatures = known.get(match[1])
        inner = arguments(text, match.end() - 1)
        for keyword in re.findall(KEYWORD, inner):
            if signatures is not None and not any(keyword in names for names in signatures):
                yield f"{match[1]}({keyword}=)"
    if code.language:
        return
    every = set().union(*(names for several in known.values() for names in several)) | options_of_hooks()
    bare = re.fullmatch(rf"{KEYWORD}\S*", text)
    if bare and bare[1] not in every:
        yield f"{bare[1]}="


def test_keywords() -> None:
    complain((code, what) for code in every_code() for what in wrong_keywords(code))


def wrong_calls(code: Code) -> Iterator[str]:
    """Calls of a name that nobody has; of what follows a dot, the attributes above know more."""
    if code.language:
        return
    for match in re.finditer(r"(?<![\w.>])([a-z_]\w*)\(", code.text):
        if match[1] not in callables() and not hasattr(builtins, match[1]) and match[1] not in c_names():
            yield f"{match[1]}()"


def test_calls() -> None:
    complain((code, what) for code in every_code() for what in wrong_calls(code))


def test_options_of_endpoints() -> None:
    pattern = r"""\boption\(["'](\w+)["']"""
    with ofipy.open(provider="tcp") as ep:
        for code in every_code():
            for name in re.findall(pattern, code.text):
                assert isinstance(ep.option(name), int), code


# ----------------------------------------------------------------------------- variables, options of commands


def wrong_variables(code: Code) -> Iterator[str]:
    names = re.findall(r"OFIPY_[A-Z0-9_]+", code.text)
    known = {parameter.name for parameter in ofipy.parameters()} if names else set()
    for name in names:
        if name not in known and not (name.endswith("_") and any(each.startswith(name) for each in known)):
            yield name


def test_variables() -> None:
    for name in providers.known():
        providers.load(name)  # which declares its parameters
    complain((code, what) for code in every_code() for what in wrong_variables(code))


def options_of(command: click.Command) -> set[str]:
    own = {"--help", "-h", "--version"}
    own.update(*(options_of(each) for each in commands_of(command).values()))
    return own.union(*(parameter.opts + parameter.secondary_opts for parameter in command.params))


COMMANDS: dict[str, Any] = {"ofipy": ofipy_command, "fabtests": fabtests}


@cache
def commands_of(group: Any) -> dict[str, click.Command]:
    """All of a group's, also those that it imports when they are asked for; none of a command that is no group."""
    names = group.list_commands(click.Context(group)) if isinstance(group, click.Group) else ()
    return {each: group.get_command(click.Context(group), each) for each in names}


def wrong_options(code: Code) -> Iterator[str]:
    for match in re.finditer(r"(?:^|[\s$(;&|])(ofipy|fabtests) ([^|&;`#]*)", code.text):
        words = re.split(" (?:python|ofipy) ", match[2])[0].split()  # behind it stands the command of a job
        command: click.Command = COMMANDS[match[1]]
        if words and re.fullmatch(r"[a-z_]+", words[0]) and (code.language or len(words) < 9):
            if words[0] not in commands_of(command):
                if not code.language or code.text.lstrip().startswith(("$", match[1])):
                    yield f"{match[1]} {words[0]}"
                continue
            command = commands_of(command)[words.pop(0)]
            command = commands_of(command).get(words[0], command) if words else command
        for word in words:
            option = word.partition("=")[0].rstrip(",.:)")
            if re.fullmatch(r"--?[A-Za-z][\w-]*", option) and option not in options_of(command):
                yield f"{match[1]} {option}"
    bare = re.fullmatch(r"(--[a-z][\w-]*)(?:[ =].*)?", code.text)
    if bare and not code.language:
        every = set().union(*(options_of(each) for each in COMMANDS.values()))
        if bare[1] not in every:
            yield bare[1]


def test_options_of_commands() -> None:
    complain((code, what) for code in every_code() for what in wrong_options(code))


# ------------------------------------------------------------------------------------------------------ C, files


@cache
def c_names() -> frozenset[str]:
    sources = [
        each for folder in ("native", "providers", "tests") for each in (ROOT / folder).rglob("*.[ch]")
    ]
    text = "\n".join(each.read_text("utf-8", errors="replace") for each in sources)
    return frozenset(re.findall(r"\b[A-Za-z_]\w*\b", text))


def wrong_c(code: Code) -> Iterator[str]:
    if code.page == "docs/explanation/names.md":
        return  # it lists former names
    for name in re.findall(r"\b(?:ofpi?|OFPI?|shm|tcp)_\w+\b(?!\*|…)", code.text):
        if name not in c_names():
            yield name
    for name in re.findall(r"\(\*(?:\w+\.)?(\w+)\)\(", code.text):
        if name not in c_names():
            yield f"(*{name})"


def test_names_of_c() -> None:
    complain((code, what) for code in every_code() for what in wrong_c(code))


def wrong_files(code: Code) -> Iterator[str]:
    for name in re.findall(
        r"(?<![\w./-])((?:native|providers|ofipy|tests|docs|fabtests)/[\w./-]*\w)", code.text
    ):
        if not (ROOT / name).exists() and not (ROOT / "native" / "include" / name).exists():
            yield name


def test_files() -> None:
    complain((code, what) for code in every_code() for what in wrong_files(code))


def test_exceptions_are_needed() -> None:
    checks = (
        wrong_attributes,
        wrong_keywords,
        wrong_calls,
        wrong_variables,
        wrong_options,
        wrong_c,
        wrong_files,
    )
    found = {(code.page, what) for code in every_code() for check in checks for what in check(code)}
    fake = {("docs/how-to/write-a-provider.md", "OFIPY_FAKE_EAGER_SIZE")}
    assert FOREIGN - fake <= found


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (wrong_attributes, "ofipy.tags"),
        (wrong_attributes, "ofipy.config"),
        (wrong_attributes, "info.version"),
        (wrong_attributes, "ep.statistics()"),
        (wrong_attributes, "ep.cq.drain()"),
        (wrong_attributes, "message.claim()"),
        (wrong_attributes, "Flag.FENSE"),
        (wrong_keywords, "tx_cq="),
        (wrong_keywords, "ofipy.open(cap='rma')"),
        (wrong_keywords, "domain.endpoint(cq=, tx_cq=)"),
        (wrong_calls, "trecv_all(tag=7)"),
        (wrong_variables, "OFIPY_SHM_RINGS"),
        (wrong_options, "ofipy info --envs"),
        (wrong_options, "ofipy bottom"),
        (wrong_options, "--jsn"),
        (wrong_c, "ofp_endpoint_opened"),
        (wrong_files, "native/src/endpoint.h"),
    ],
)
def test_what_is_not_there_is_found(check: Callable[[Code], Iterator[str]], wrong: str) -> None:
    assert list(check(Code("page", 1, wrong, "")))
