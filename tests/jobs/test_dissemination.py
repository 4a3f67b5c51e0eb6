# SPDX-License-Identifier: BSD-3-Clause
"""The exchange without a wire: who sends how much to whom, for any number of processes."""

from __future__ import annotations

import random
import time

import pytest

from ofipy import IncompatiblePeer, InvalidArgument
from ofipy.jobs.dissemination import HEAD_SIZE, Dissemination, partners, rounds

LENGTH = 4  # of a block, before it


def exchange(blocks: list[bytes]) -> tuple[list[list[bytes]], int, list[int]]:
    """All processes in one; results, messages, bytes that each has sent."""
    size = len(blocks)
    members = [Dissemination(rank, size, block) for rank, block in enumerate(blocks)]
    messages, sent = 0, [0] * size
    for steps in zip(*(rounds(rank, size) for rank in range(size)), strict=True):
        mail = {step.to: (rank, members[rank].message(step)) for rank, step in enumerate(steps)}
        for rank, step in enumerate(steps):
            source, message = mail[rank]
            assert source == step.source
            members[rank].take(step, message)
            messages, sent[source] = messages + 1, sent[source] + len(message)
    return [member.result() for member in members], messages, sent


@pytest.mark.parametrize("size", [*range(1, 18), 31, 32, 33, 100])
def test_everybody_has_everything(size: int) -> None:
    blocks = [random.Random(rank).randbytes(rank % 7) for rank in range(size)]
    results, messages, _ = exchange(blocks)
    assert results == [blocks] * size
    assert messages == size * (size - 1).bit_length()


def test_512_processes_hold_the_formula() -> None:
    size, block = 512, bytes(132)
    started = time.perf_counter()
    results, messages, sent = exchange([block] * size)
    seconds = time.perf_counter() - started
    print(f"{size} processes: {messages} messages, {sent[0]} bytes from each, {seconds:.2f} s in one process")
    assert results == [[block] * size] * size
    assert messages == size * 9
    assert set(sent) == {(size - 1) * (len(block) + LENGTH) + 9 * HEAD_SIZE}


def test_bytes_of_each_process_are_linear() -> None:
    def bytes_per_process(size: int) -> int:
        return max(exchange([bytes(100)] * size)[2])

    assert bytes_per_process(128) < 2.05 * bytes_per_process(64)


def test_partners_are_few_and_always_the_same() -> None:
    assert partners(0, 1) == []
    assert partners(0, 6) == [5, 4, 2]
    assert len(set(partners(3, 512))) == 9


def test_a_message_of_another_exchange_is_refused() -> None:
    (step,) = rounds(0, 2)
    message = Dissemination(1, 2, b"x", sequence=4).message(next(rounds(1, 2)))
    with pytest.raises(InvalidArgument, match=r"rank 1 in round 0.*same calls"):
        Dissemination(0, 2, b"y", sequence=3).take(step, message)


def test_a_message_of_another_release_is_told_by_its_version() -> None:
    (step,) = rounds(0, 2)
    message = bytearray(Dissemination(1, 2, b"x").message(next(rounds(1, 2))))
    message[4] = 3
    with pytest.raises(
        IncompatiblePeer, match=r"rank 1: .* version 3 of the exchange .* side version 1 \(update"
    ):
        Dissemination(0, 2, b"y").take(step, bytes(message))
    message[6] = 2  # it speaks versions 1 and 2 too
    Dissemination(0, 2, b"y").take(step, bytes(message))


@pytest.mark.parametrize("cut", [0, 10, HEAD_SIZE, HEAD_SIZE + 3, HEAD_SIZE + 5])
def test_a_damaged_message_is_refused(cut: int) -> None:
    (step,) = rounds(0, 2)
    message = Dissemination(1, 2, b"block").message(next(rounds(1, 2)))
    with pytest.raises(InvalidArgument):
        Dissemination(0, 2, b"y").take(step, message[:cut])
