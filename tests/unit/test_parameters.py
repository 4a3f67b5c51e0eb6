# SPDX-License-Identifier: BSD-3-Clause
"""Every parameter that is declared, in the environment and in the file: its bounds hold, what is beyond is refused."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ofipy
from ofipy._discovery import providers

TIMEOUT = 20
SUFFIXES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
NONSENSE = ("many", "1.5", "1e3", "nan", "inf", "-", "0x10", "1 k", "99999999999999999999")
NOT_TRUTH = ("maybe", "2", "-1", "y es")
TRUTH = ("bool", "bool or always")


def declared() -> list[ofipy.Parameter]:
    """Those of the core and of every installed provider that loads."""
    for name in providers.ordered_names():
        providers.load(name)
    return [each for each in ofipy.parameters() if each.type != "string"]


def number(text: str) -> int:
    return int(text.rstrip("kmg")) * SUFFIXES.get(text[-1], 1)


def bounds(parameter: ofipy.Parameter) -> tuple[int, int]:
    least, _, most = parameter.range.partition(" to ")
    return number(least), number(most)


def allowed(parameter: ofipy.Parameter) -> list[str]:
    if parameter.type == "bool":
        return ["yes", "no", "ON", "false", "1"]
    if parameter.type == "bool or always":
        return ["yes", "no", "ON", "false", "1", "always", "ALWAYS"]
    return [str(bound) for bound in bounds(parameter)]


def refused(parameter: ofipy.Parameter) -> list[str]:
    if parameter.type in TRUTH:
        return list(NOT_TRUTH)
    least, most = bounds(parameter)
    return [str(least - 1), str(most + 1), *NONSENSE]


def concerned(parameter: ofipy.Parameter) -> list[str]:
    """Providers that read it, or, where its own cannot run on this machine, that must not mind it."""
    own = [name for name in providers.ordered_names() if parameter.name.startswith(f"OFIPY_{name.upper()}_")]
    return [name for name in own if ofipy.getinfo(provider=name, ep_type="rdm")] or ["shm", "tcp"]


def exchange(ep: ofipy.Endpoint, *, unexpected: bool) -> None:
    """Messages of every way to send one, from an endpoint to itself."""
    me, sizes = ep.insert(ep.address), (0, 8, 200, 5000, 100_000, 3 << 20)
    rooms = [bytearray(size) for size in sizes]
    if unexpected:
        sends = [ep.tsend(bytes([size % 251]) * size, me, tag=size) for size in sizes]
        receives = [ep.trecv_into(room, tag=size) for room, size in zip(rooms, sizes, strict=True)]
    else:
        receives = [ep.trecv_into(room, tag=size) for room, size in zip(rooms, sizes, strict=True)]
        sends = [ep.tsend(bytes([size % 251]) * size, me, tag=size) for size in sizes]
    ofipy.wait_all([*receives, *sends], timeout=TIMEOUT)
    assert rooms == [bytes([size % 251]) * size for size in sizes]


@pytest.mark.parametrize("parameter", declared(), ids=lambda each: each.name)
def test_environment(parameter: ofipy.Parameter, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in concerned(parameter):
        for text in refused(parameter):
            monkeypatch.setenv(parameter.name, text)
            with pytest.raises(ofipy.ConfigError) as caught:
                ofipy.open(provider=provider)
            assert f"{parameter.name}={text!r} in the environment; {parameter.range} is meant" in str(
                caught.value
            )
        for text in allowed(parameter):
            monkeypatch.setenv(parameter.name, text)
            if "_PORT_" in parameter.name:  # the two make one range
                monkeypatch.setenv("OFIPY_TCP_PORT_LOW", text)
                monkeypatch.setenv("OFIPY_TCP_PORT_HIGH", text)
            with ofipy.open(provider=provider) as ep:
                exchange(ep, unexpected=False)
                # A queue of one operation waits for its receive, which would come later.
                exchange(ep, unexpected=parameter.name != "OFIPY_TX_QUEUE")
                if parameter.name == "OFIPY_TX_QUEUE":
                    assert ep.info.tx_size == ep.option("tx_size") == int(text)
                if parameter.name == "OFIPY_TCP_PORT_LOW" and int(text):
                    assert str(ep.address).endswith(f":{text}")


FILE = """
import json, os, sys
import ofipy
from ofipy._base import config
from ofipy._discovery import providers
answers = []
for name in providers.ordered_names():
    providers.load(name)
for key, value in json.load(sys.stdin):
    with open(os.environ["OFIPY_CONFIG"], "w") as file:
        file.write(f"{key} = {value}\\n")
    config._waiting = None
    try:
        config.apply(complete=True)
        answers.append(next(each.value for each in ofipy.parameters() if each.name == "OFIPY_" + key.upper()))
    except ofipy.ConfigError as error:
        answers.append(str(error))
print(json.dumps(answers))
"""


def test_file(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    cases, expected = [], []
    for parameter in declared():
        key = parameter.name.removeprefix("OFIPY_").lower()
        for text in allowed(parameter):
            cases.append((key, f'"{text}"'))
            expected.append(text)
        for text in refused(parameter):
            cases.append((key, f'"{text}"'))
            expected.append(f"{config}: {key} = {text!r}; {parameter.range} is meant")
        if parameter.type not in TRUTH:
            cases.append((key, str(bounds(parameter)[1] + 1)))
            expected.append(f"{config}: {key} = {cases[-1][1]!r}; {parameter.range} is meant")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OFIPY_")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", FILE],
        env=clean | {"OFIPY_CONFIG": str(config)},
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert json.loads(done.stdout) == expected


def test_every_number_has_a_range() -> None:
    for parameter in declared():
        if parameter.type == "bool":
            assert parameter.range == "yes or no"
        elif parameter.type == "bool or always":
            assert parameter.range == "no, yes or always"
        else:
            least, most = bounds(parameter)
            assert least <= number(parameter.default) <= most


def test_a_refused_value_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_TX_QUEUE", "0")
    with pytest.raises(ofipy.ConfigError):
        ofipy.open(provider="shm")
    monkeypatch.delenv("OFIPY_TX_QUEUE")
    ofipy.open(provider="shm").close()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "the key file is missing"),
        ("", "Is a directory"),
        ("short", "a key of 16 to 1024 bytes is meant"),
    ],
)
def test_key_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    (tmp_path / "short").touch(mode=0o600)
    path = tmp_path / name
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(path))
    with pytest.raises(ofipy.FabricError) as caught:
        ofipy.open(provider="tcp")
    assert f"OFIPY_AUTH_KEY_FILE={path}: {said}" in str(caught.value)


@pytest.mark.parametrize("by", ["environment", "file"])
@pytest.mark.parametrize(
    "use", ["ofipy.open(provider='tcp')", "ofipy.open(provider='link')", "ofipy.jobs.keys.configured()"]
)
def test_a_missing_key_file_is_told_with_its_setting_and_a_remedy(tmp_path: Path, by: str, use: str) -> None:
    path, settings = tmp_path / "job.key", tmp_path / "c.toml"
    settings.write_text(f'auth_key_file = "{path}"\n' if by == "file" else "")
    environment = os.environ | {"OFIPY_CONFIG": str(settings)}
    environment |= {"OFIPY_AUTH_KEY_FILE": str(path)} if by == "environment" else {}
    program = (
        f"import ofipy.jobs.keys\ntry: {use}\n"
        "except ofipy.MissingKeyFile as error: print(error.message, error.remedy, error.errno, sep='\\n')"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    message, remedy, code = ran.stdout.splitlines()
    named = f"auth_key_file in {settings}" if by == "file" else "OFIPY_AUTH_KEY_FILE in the environment"
    assert f"OFIPY_AUTH_KEY_FILE={path}: " in message
    assert message.endswith(f"named by {named}")
    assert f"ofipy key new {path}" in remedy
    assert int(code) == errno.ENOENT
