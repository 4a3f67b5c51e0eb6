# SPDX-License-Identifier: BSD-3-Clause
"""The commands as a user runs them: each in a process of its own, over shared memory."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

import ofipy

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


class TestVersion:
    def test_lines(self) -> None:
        assert f"ofipy    {ofipy.__version__}" in run("ofipy", "version")

    def test_document(self) -> None:
        document = run_json("ofipy", "version")
        assert document["schema"] == 1
        assert document["ofipy"] == ofipy.__version__


class TestInfo:
    def test_the_table_names_providers_and_capabilities(self) -> None:
        printed = run("ofipy", "info")
        assert "shm" in printed
        assert "tagged" in printed

    def test_the_document_lists_every_provider(self) -> None:
        document = run_json("ofipy", "info")
        assert document["schema"] == 1
        shm = next(each for each in document["providers"] if each["name"] == "shm")
        assert shm["available"]
        assert shm["reason"] is None
        assert {"rdm"} == {info["ep_type"] for info in shm["infos"]}
        assert "tagged" in shm["infos"][0]["caps"]

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
        assert lines[0].split() == ["bytes", "iters", "total", "time", "MB/sec", "usec/xfer", "Mxfers/sec"]
        assert [line.split()[0] for line in lines[1:]] == ["64", "8k"]

    def test_every_byte_is_checked(self) -> None:
        printed = run(
            "fabtests",
            "rdm_tagged_pingpong",
            "--local",
            "-p",
            "shm",
            "-I",
            "300",
            "-S",
            "l:1,97,70000",
            "-v",
            "-m",
        )
        assert printed.count("xfer_size") == 3

    def test_server_and_client(self) -> None:
        name = f"test-{os.getpid()}"
        program = [sys.executable, "-P", "-m", "fabtests", "rdm_tagged_pingpong", "-p", "shm"]
        with subprocess.Popen([*program, "-B", name], stdout=subprocess.PIPE, text=True) as server:
            try:
                client = retry_client([*program, "-P", name, "-I", "50", "-S", "64", "localhost"])
                assert server.stdout is not None
                assert server.stdout.read().splitlines()[0] == client.splitlines()[0]
                assert server.wait(20) == 0
            finally:
                server.kill()

    def test_a_missing_server_is_an_error(self) -> None:
        error = run(
            "fabtests", "rdm_tagged_pingpong", "-p", "shm", "-P", f"nobody-{os.getpid()}", "localhost", code=1
        )
        assert "nobody" in error


def retry_client(command: list[str]) -> str:
    """Run the client until the server is there; a refusal is quick and says that it is not."""
    for _ in range(100):
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if result.returncode == 0:
            return result.stdout
        assert "start the peer first" in result.stderr
    raise AssertionError("the server never came up")
