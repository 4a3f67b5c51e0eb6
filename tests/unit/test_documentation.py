# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the README, of the tutorial and of the guides, run as they stand but for the number of a service."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ofipy
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PAIR = re.compile(
    r"```python\n(# server\.py\n.*?)```\n.*?```python\n(# client\.py\n.*?)```\n.*?```text\n(.*?)```",
    re.DOTALL,
)


def pairs(page: str) -> list[tuple[str, str, str]]:
    return PAIR.findall((ROOT / page).read_text())


SERVICE = re.compile(r'(service="|localhost:)(74\d\d)\b')


def elsewhere(*programs: str) -> list[str]:
    """The same with services that nobody uses: the page's own is there once on a host, for one test at a time."""
    used = {service: str(free_port()) for program in programs for _, service in SERVICE.findall(program)}
    return [SERVICE.sub(lambda match: match[1] + used[match[2]], program) for program in programs]


KNOCK = """
import ofipy

with ofipy.open() as ep:
    ep.insert("localhost:{service}", wait=60)
"""


def wait_for_server(server: str, folder: Path) -> None:
    (service,) = re.findall(r'service="(\d+)"', server)
    knocked = subprocess.run(
        [sys.executable, "-P", "-c", KNOCK.format(service=service)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert knocked.returncode == 0, knocked.stderr


def run_pair(server: str, client: str, folder: Path) -> tuple[str, str]:
    """Start the server, then, when it is there, the client: as a person does, one after the other."""
    server, client = elsewhere(server, client)
    (folder / "server.py").write_text(server)
    (folder / "client.py").write_text(client)
    with subprocess.Popen(
        [sys.executable, "-P", "server.py"], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for_server(server, folder)
            ran = subprocess.run(
                [sys.executable, "-P", "client.py"], cwd=folder, capture_output=True, text=True, timeout=60
            )
            assert ran.returncode == 0, ran.stderr
            assert process.stdout is not None
            return process.stdout.read(), ran.stdout
        finally:
            if process.poll() is None:
                process.kill()


def programs(page: str) -> list[tuple[str, str]]:
    """Programs of a page that stand alone, each with what it prints."""
    return re.findall(
        r"```python\n(.*?)```\n(?:(?!```).)*?```text\n(.*?)```", (ROOT / page).read_text(), re.DOTALL
    )


def run_program(program: str, folder: Path, settings: dict[str, str]) -> str:
    """Run it with these settings and no others; return what it prints."""
    (program,) = elsewhere(program)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("OFIPY_")}
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=folder,
        env=environment | {"XDG_CONFIG_HOME": str(folder)} | settings,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("number", range(4))
def test_tutorial(number: int, tmp_path: Path) -> None:
    found = pairs("docs/tutorial/first-messages.md")
    assert len(found) == 4
    server, client, output = found[number]
    said = run_pair(server, client, tmp_path)
    assert "".join(f"server: {said[0]}client: {said[1]}") == output


@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
def test_request_and_reply(provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_PROVIDER", provider)
    ((server, client, output),) = pairs("docs/how-to/request-and-reply.md")
    said = run_pair(server, client, tmp_path)
    assert said[0] == ""
    assert f"client: {said[1]}" == output


def test_readme(tmp_path: Path) -> None:
    ((server, client, output),) = pairs("README.md")
    said = run_pair(server, client, tmp_path)
    for line in "".join(said).splitlines():
        assert line in output


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("docs/how-to/use-asyncio.md", 5),
        ("docs/how-to/send-objects.md", 2),
        ("docs/how-to/trace-and-inject-faults.md", 2),
        ("docs/reference/records.md", 1),
    ],
)
def test_programs(page: str, count: int, tmp_path: Path) -> None:
    found = programs(page)
    assert len(found) == count
    for program, output in found:
        assert run_program(program, tmp_path, {}) == output


def test_finding_guide(tmp_path: Path) -> None:
    found = programs("docs/how-to/find-each-other.md")
    assert len(found) == 3
    for program, output in found:
        assert run_program(program, tmp_path, {}) == output


@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
def test_guide_to_peers_that_go(provider: str, tmp_path: Path) -> None:
    ((program, output),) = programs("docs/how-to/when-a-peer-goes.md")
    assert run_program(program, tmp_path, {"OFIPY_PROVIDER": provider}) == output


def test_guide_to_limits_shows_commands_that_run() -> None:
    """What a command on the page says is the machine's; that it says something is the page's."""
    page = (ROOT / "docs/how-to/containers-and-limits.md").read_text()
    cells = [row.split("|")[3] for row in page.splitlines() if row.count("|") == 5]
    commands = [command for cell in cells for command in re.findall(r"`([^`]+)`", cell)]
    ours = [
        command for command in commands if command.startswith(("ulimit", "readlink", "id ", "nproc", "df "))
    ]
    assert len(ours) >= 8
    for command in ours:
        ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30)
        assert ran.stdout, command


def test_debugging_guide(tmp_path: Path) -> None:
    found = programs("docs/how-to/debug.md")
    assert len(found) == 5
    for program, output in found:
        said = run_program(program, tmp_path, {})
        # What this host is called.
        said = re.sub(r"shm: \S+:7099:", "shm: HOST:7099:", said)
        said = re.sub(r"of user \d+", "of user UID", said)
        assert re.sub(r"connect to \S+:7099:", "connect to ADDRESS:7099:", said) == output


def test_configuration_guide(tmp_path: Path) -> None:
    page = "docs/how-to/configure.md"
    ((program, output),) = programs(page)
    (file,) = re.findall(r"```toml\n# config\.toml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    (tmp_path / "config.toml").write_text(file)
    settings = {"OFIPY_CONFIG": "config.toml", "OFIPY_SPIN_TIME": "5"}
    assert run_program(program, tmp_path, settings) == output


def test_closing_guide(tmp_path: Path) -> None:
    found = programs("docs/how-to/close-without-loss.md")
    assert len(found) == 2
    for program, output in found:
        assert run_program(program, tmp_path, {}) == output


def test_debugging_guide_names_every_exception() -> None:
    rows = re.findall(r"^\| (`\w.*?) \|", (ROOT / "docs/how-to/debug.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    kinds = {
        name
        for name in ofipy.__all__
        if isinstance(kind := getattr(ofipy, name), type) and issubclass(kind, ofipy.FabricError)
    }
    assert kinds - {"FabricError"} == named


def test_connections_guide(tmp_path: Path) -> None:
    found = programs("docs/how-to/connect-endpoints.md")
    assert len(found) == 3
    able = {info.provider for info in ofipy.getinfo(ep_type="msg", caps={"msg", "tagged"})}
    if not able:
        pytest.skip("no provider here has connected endpoints")
    for provider in able:
        for program, output in found:
            assert run_program(program, tmp_path, {"OFIPY_PROVIDER": provider}) == output


def test_remote_memory_guide() -> None:
    page = (ROOT / "docs/how-to/remote-memory.md").read_text()
    ((program, output),) = re.findall(r"```python\n(.*?)```\n.*?```text\n(.*?)```", page, re.DOTALL)
    # What a libfabric of this machine makes of it, the conformance suite says.
    able = {info.provider for info in ofipy.getinfo(caps={"rma", "atomic"}) if ":" not in info.provider}
    assert "shm" in able
    for provider in able:
        ran = subprocess.run(
            [sys.executable, "-P", "-c", program],
            env=os.environ | {"OFIPY_PROVIDER": provider},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == output


def test_every_name_of_an_endpoint_is_in_one_group() -> None:
    page = (ROOT / "docs/reference/endpoint.md").read_text()
    listed = re.findall(r"^   ~Endpoint\.(\w+)$", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == {name for name in dir(ofipy.Endpoint) if not name.startswith("_")}


def test_every_provider_of_ours_has_a_section_of_its_own() -> None:
    page = (ROOT / "docs/reference/providers.md").read_text()
    ours = {each.name for each in (ROOT / "providers").iterdir() if (each / "README.md").exists()} | {"link"}
    assert set(re.findall(r"^## (\w+)$", page, re.MULTILINE)) == ours
    debugging = (ROOT / "docs/how-to/debug.md").read_text()
    (columns,) = re.findall(r"## What is special to the provider\?\n\n(.*)\n", debugging)
    assert set(re.findall(r"\w+", columns)) == ours


def test_ofipy_is_installed_from_a_checkout() -> None:
    """No package index has ofipy, so neither a page nor an error names a command that asks one for it."""
    asks_an_index = re.compile(r"pip install(?: -\S+)* ['\"]?ofipy\b(?!/)")
    texts = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    for folder in ("docs", "providers", "ofipy", "fabtests"):
        texts += [each for each in (ROOT / folder).rglob("*") if each.suffix in (".md", ".py", ".c", ".h")]
    found = [str(each) for each in texts if asks_an_index.search(each.read_text("utf-8"))]
    assert not found


def test_the_tables_of_calls_have_a_column_for_each_provider() -> None:
    page = (ROOT / "docs/reference/libfabric.md").read_text()
    ours = ["shm", "tcp", "verbs", "link", "ofi"]
    rows = 0
    for table in re.findall(r"^(?:\|.*\|\n)+", page, re.MULTILINE):
        header, _, *lines = [re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in table.splitlines()]
        if "shm" not in header:
            continue
        first = header.index("shm")
        assert header[first:-1] == ours
        for line in lines:
            assert len(line) == len(header), line[0]
            assert set(line[first:-1]) <= {"yes", "core", "lib", "no", "–", "`udp`"}, line[0]
            rows += 1
    assert rows
