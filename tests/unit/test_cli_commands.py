# SPDX-License-Identifier: BSD-3-Clause
"""The commands as a user runs them: each in a process of its own, over shared memory."""

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import ofipy
from ofipy.cli.key import new_key
from ofipy.cli.support import CommandError

HERE = {"OFIPY_PROVIDER": "shm"}


def run(*words: str, code: int = 0, **environment: str) -> str:
    """Run ``python -m …`` and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-P", "-m", *words],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == code, result.stderr
    return result.stdout if code == 0 else result.stderr


def run_json(*words: str, **environment: str) -> Any:
    return json.loads(run(*words, "--json", **environment))


class TestUsage:
    @pytest.mark.skipif(not hasattr(click.exceptions, "NoSuchCommand"), reason="click is older than 8.4")
    def test_what_was_meant(self) -> None:
        assert "Did you mean 'info'" in run("ofipy", "inof", code=2)

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion(self, shell: str) -> None:
        assert "_OFIPY_COMPLETE" in run("ofipy", _OFIPY_COMPLETE=f"{shell}_source")
        words = {"COMP_WORDS": "ofipy doc", "COMP_CWORD": "doc" if shell == "fish" else "1"}
        assert "doctor" in run("ofipy", _OFIPY_COMPLETE=f"{shell}_complete", **words)


class TestVersion:
    def test_lines(self) -> None:
        assert f"ofipy        {ofipy.__version__}" in run("ofipy", "version")

    def test_document(self) -> None:
        document = run_json("ofipy", "version")
        assert document["schema"] == 1
        assert document["ofipy"] == ofipy.__version__
        assert document["provider_abi"] == ".".join(map(str, ofipy.PROVIDER_ABI))
        assert document["compiler"]
        assert document["libc"].startswith(("glibc ", "musl"))
        # 40 digits, unless it was built where no git is.
        assert re.fullmatch("[0-9a-f]{40}|unknown", document["commit"])
        assert run_json("ofipy", "info", "--version") == document
        assert {"shm", "tcp"} <= {each["name"] for each in document["providers"] if each["version"]}


class TestKey:
    def test_a_key_is_made_and_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        keys = [tmp_path / name for name in ("one", "two")]
        for file in keys:
            assert run("ofipy", "key", "new", str(file)) == f"{file}\n"
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(keys[0]))
        with ofipy.open(provider="tcp", progress="auto") as a, ofipy.open(provider="tcp") as b:
            a.tsend(b"proven", a.insert(b.address), tag=1)
            assert b.trecv(tag=1).wait(timeout=20).data == b"proven"
        assert keys[0].read_bytes() != keys[1].read_bytes()

    def test_nothing_is_overwritten(self, tmp_path: Path) -> None:
        file, link = tmp_path / "key", tmp_path / "link"
        file.write_text("kept")
        link.symlink_to(tmp_path / "nowhere")
        for existing in (file, link, tmp_path):
            assert f"{existing} exists already" in run("ofipy", "key", "new", str(existing), code=1)
        assert file.read_text() == "kept"
        assert not (tmp_path / "nowhere").exists()

    def test_the_folder_must_be_there(self, tmp_path: Path) -> None:
        folder = tmp_path / "missing"
        assert f"mkdir -p -m 700 {folder}" in run("ofipy", "key", "new", str(folder / "key"), code=1)
        (tmp_path / "file").touch()
        assert "Not a directory" in run("ofipy", "key", "new", str(tmp_path / "file" / "key"), code=1)

    def test_nothing_is_left_of_a_key_that_cannot_be_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(descriptor: int, data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "write", fail)
        with pytest.raises(CommandError, match="No space left"):
            new_key(tmp_path / "key")
        assert not list(tmp_path.iterdir())


class TestInfo:
    def test_the_table_names_providers_and_capabilities(self) -> None:
        printed = run("ofipy", "info")
        assert "shm" in printed
        assert "tagged" in printed

    @pytest.mark.parametrize("provider", ["shm", "tcp"])
    def test_what_open_takes_is_marked(self, provider: str) -> None:
        with ofipy.open(provider=provider) as ep:
            taken = ep.info
        document = run_json("ofipy", "info", OFIPY_PROVIDER=provider)
        assert document["default"] == {"provider": provider, "domain": taken.domain}
        printed = run("ofipy", "info", OFIPY_PROVIDER=provider, COLUMNS="200")
        marked = [line for line in printed.splitlines() if f"{provider} *" in line]
        assert len(marked) == 1
        assert f"{taken.fabric}/{taken.domain}" in marked[0]
        assert "* what open() takes" in printed

    def test_an_interface_is_one_row(self) -> None:
        infos = ofipy.getinfo(provider="tcp")
        interfaces = {info.domain.removesuffix("-ipv6") for info in infos}
        printed = run("ofipy", "info", "-p", "tcp", COLUMNS="200")
        assert sum(line.startswith("│ tcp ") for line in printed.splitlines()) == len(interfaces)
        assert all(f"{info.fabric}/{info.domain}" in printed for info in infos)

    def test_it_fits_a_narrow_terminal(self) -> None:
        assert max(map(len, run("ofipy", "info", COLUMNS="60").splitlines())) <= 60

    @pytest.mark.parametrize("keyed", [False, True])
    def test_what_peers_prove(self, keyed: bool, tmp_path: Path) -> None:
        path = str(tmp_path / "key") if keyed else ""
        if keyed:
            new_key(Path(path))
        document = run_json("ofipy", "info", OFIPY_AUTH_KEY_FILE=path)
        assert document["key_set"] is keyed
        proofs = {
            (info["provider"], info["ep_type"]): info["peer_proof"]
            for each in document["providers"]
            for info in each["infos"]
        }
        assert proofs["shm", "rdm"] == "user"
        assert proofs["tcp", "rdm"] == proofs["tcp", "msg"] == proofs["link", "rdm"] == "key"
        assert all(proof == "none" for (name, _), proof in proofs.items() if name.startswith("ofi:"))
        printed = run("ofipy", "info", "-p", "shm,tcp", OFIPY_AUTH_KEY_FILE=path, COLUMNS="200")
        cells = [line.split("│")[1:-1] for line in printed.splitlines() if line.startswith("│ ")]
        told = {cell[0].strip(): cell[4].strip() for cell in cells if cell[0].strip()}
        assert told == {"shm": "their user", "tcp": "the key" if keyed else "a key, if set"}

    def test_what_is_encrypted(self, tmp_path: Path) -> None:
        new_key(tmp_path / "key")
        settings = {"OFIPY_AUTH_KEY_FILE": str(tmp_path / "key"), "OFIPY_TLS_CERT": ""}
        for encryption, which in (("auto", "none"), ("required", "all"), ("off", "none")):
            variables = settings | {"OFIPY_ENCRYPTION": encryption}
            document = run_json("ofipy", "info", **variables)
            assert document["encrypted"] == which
            assert ("TLS_AES_128_GCM_SHA256" in document["ciphers"]) == (which == "all")
            rows = run("ofipy", "info", "-p", "shm,tcp", COLUMNS="200", **variables).splitlines()
            cells = [row.split("│")[1:] for row in rows if row.startswith("│")]
            told = {cell[0].strip(): cell[5].strip() for cell in cells if cell[0].strip()}
            assert told == {"shm": "within host", "tcp": which}
            assert any("TLS_AES_128_GCM_SHA256" in row for row in rows) == (which == "all")
        certified = settings | {"OFIPY_ENCRYPTION": "auto", "OFIPY_TLS_CERT": "cert.pem"}
        assert run_json("ofipy", "info", **certified)["encrypted"] == "between hosts"

    def test_the_document_lists_every_provider(self) -> None:
        document = run_json("ofipy", "info")
        assert document["schema"] == 1
        shm = next(each for each in document["providers"] if each["name"] == "shm")
        assert shm["available"]
        assert shm["reason"] is None
        assert {"rdm"} == {info["ep_type"] for info in shm["infos"]}
        assert "tagged" in shm["infos"][0]["caps"]
        # It has no device to tell of.
        assert shm["infos"][0]["device"] == {}

    def test_a_filter_that_nothing_fits_says_why(self) -> None:
        document = json.loads(
            subprocess.run(
                [sys.executable, "-P", "-m", "ofipy", "info", "-p", "shm", "-c", "multicast", "--json"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False,
            ).stdout
        )  # fmt: skip
        assert [each["name"] for each in document["providers"]] == ["shm"]
        assert not document["providers"][0]["available"]
        assert "multicast" in document["providers"][0]["reason"]
        assert "no provider" in run("ofipy", "info", "-p", "shm", "-c", "multicast", code=3)

    def test_an_unknown_provider_names_the_known(self) -> None:
        assert "shm" in run("ofipy", "info", "-p", "carrier-pigeon", code=3)

    def test_verbose_shows_every_attribute(self) -> None:
        printed = run("ofipy", "info", "--verbose", "-p", "shm")
        assert "inject_size" in printed
        assert "_record" not in printed

    def test_parameters(self) -> None:
        document = run_json("ofipy", "info", "--env", **HERE)
        provider = next(each for each in document["parameters"] if each["name"] == "OFIPY_PROVIDER")
        assert (provider["value"], provider["source"]) == ("shm", "environment")
        assert {"type", "default", "help"} < set(provider)
        assert "OFIPY_PROVIDER" in run("ofipy", "info", "--env")


class TestPingpong:
    def test_one_provider_is_one_document(self) -> None:
        document = run_json("ofipy", "pingpong", "-I", "50", "-S", "8,64k", **HERE)
        assert (document["schema"], document["provider"]) == (1, "shm")
        assert [row["bytes"] for row in document["rows"]] == [8, 65536]
        assert set(document["rows"][0]) == {
            "bytes", "iterations", "usec_per_transfer", "p50_usec", "p99_usec", "mb_per_sec",
        }  # fmt: skip
        assert document["rows"][0]["iterations"] == 50
        assert 0 < document["rows"][0]["p50_usec"] <= document["rows"][0]["p99_usec"]
        assert document["machine"]["cores"] == os.cpu_count()

    def test_without_a_choice_every_provider_has_a_document(self) -> None:
        documents = run_json("ofipy", "pingpong", "-I", "20", "-S", "8", OFIPY_PROVIDER="")
        assert "shm" in [document["provider"] for document in documents]

    def test_a_table(self) -> None:
        printed = run("ofipy", "pingpong", "-p", "shm", "-I", "20", "-S", "8")
        assert "shm: tagged ping-pong" in printed

    @pytest.mark.parametrize("words", [["-S", "0"], ["--listen", "somewhere"], ["-I", "0"], ["--nonsense"]])
    def test_usage_errors(self, words: list[str]) -> None:
        assert "Error" in run("ofipy", "pingpong", *words, code=2)

    def test_a_server_without_a_client_times_out(self) -> None:
        error = run(
            "ofipy",
            "pingpong",
            "--listen",
            "--port",
            f"test-{os.getpid()}",
            "--timeout",
            "0.5",
            code=124,
            **HERE,
        )
        assert "0.5 s" in error

    def test_ctrl_c_ends_a_wait_in_c(self) -> None:
        command = [
            sys.executable,
            "-P",
            "-m",
            "ofipy",
            "pingpong",
            "--listen",
            "--port",
            f"test-{os.getpid()}",
        ]
        # A shell's background job inherits SIGINT ignored, and Python leaves it so.
        with subprocess.Popen(
            command,
            env=os.environ | HERE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as server:
            assert server.stderr is not None
            assert "Waiting" in server.stderr.readline()
            server.send_signal(signal.SIGINT)
            assert server.wait(20) == 130


class TestTaggedPingpong:
    def test_both_sides_here(self) -> None:
        lines = run(
            "fabtests", "rdm_tagged_pingpong", "--local", "-p", "shm", "-I", "50", "-S", "l:64,8192"
        ).splitlines()
        columns = ["bytes", "iters", "total", "time", "MB/sec", "usec/xfer", "Mxfers/sec"]
        assert lines[0].split() == [*columns, "p50", "p99", "p99.9"]
        assert [line.split()[0] for line in lines[1:]] == ["64", "8k"]

    def test_every_byte_is_checked(self) -> None:
        printed = run(
            "fabtests",
            "rdm_tagged_pingpong",
            "--local",
            "-p",
            "shm",
            "-I",
            "50",
            "-S",
            "l:1,97,70000",
            "-v",
            "-m",
        )
        assert printed.count("xfer_size") == 3

    def test_server_and_client(self) -> None:
        name = f"test-{os.getpid()}"
        program = [sys.executable, "-P", "-m", "fabtests", "rdm_tagged_pingpong", "-p", "shm"]
        # As with libfabric's programs both sides are told what to do.
        same = ["-I", "50", "-S", "64", "-m"]
        with subprocess.Popen([*program, "-B", name, *same], stdout=subprocess.PIPE, text=True) as server:
            try:
                client = run_client([*program, "-P", name, *same, "localhost"])
                assert server.stdout is not None
                assert (
                    server.stdout.read().splitlines()[2].split(",")[:3]
                    == client.splitlines()[2].split(",")[:3]
                )
                assert server.wait(20) == 0
            finally:
                server.kill()

    def test_a_missing_server_is_an_error(self) -> None:
        program = ["fabtests", "rdm_tagged_pingpong", "-p", "shm", "-P", f"nobody-{os.getpid()}", "localhost"]
        error = run(*program, code=1, OFIPY_CONNECT_TIMEOUT="1")
        assert "no endpoint listens there" in error


def run_client(command: list[str]) -> str:
    """Run the client, which waits for its server."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout
