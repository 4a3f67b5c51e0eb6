# SPDX-License-Identifier: BSD-3-Clause
"""The metrics of processes. ``docs/reference/metrics.md`` has a line for each."""

from ofipy.exporter.family import Family

__all__ = [
    "COUNTERS",
    "DROPPED_SERIES",
    "ENDPOINTS",
    "INFO",
    "LEVELS",
    "MESSAGES",
    "MESSAGE_BYTES",
    "MESSAGE_SIZES",
    "PEER_BYTES",
    "PEER_ERRORS",
    "PEER_MESSAGES",
    "PROCESSES",
    "PROCESS_FAMILIES",
    "STALLED",
    "UNREADABLE",
]

GROUP = ("program", "provider")
PEER = (*GROUP, "peer", "way")


def counter(name: str, help: str, *labels: str) -> Family:
    """A sum over a program's endpoints of a provider, ended ones too."""
    return Family(f"ofipy_{name}_total", "counter", (*GROUP, *labels), help)


def level(name: str, help: str) -> Family:
    """A sum over a program's endpoints of a provider that are open now."""
    return Family(f"ofipy_{name}", "gauge", GROUP, help)


OPERATIONS = counter("operations", "Operations finished.", "operation")
REGISTRATIONS = counter("registrations", "Registrations of memory for operations.", "result")
LARGE_MESSAGES = counter("large_messages", "Large messages received over shared memory.", "moved")

COUNTERS: dict[str, tuple[Family, tuple[str, ...]]] = {
    "sends": (OPERATIONS, ("send",)),
    "receives": (OPERATIONS, ("receive",)),
    "reads": (OPERATIONS, ("read",)),
    "writes": (OPERATIONS, ("write",)),
    "atomics": (OPERATIONS, ("atomic",)),
    "flushes": (OPERATIONS, ("flush",)),
    "errors": (counter("operation_errors", "Operations finished with an error."), ()),
    "bytes_sent": (counter("sent_bytes", "Payload sent."), ()),
    "bytes_received": (counter("received_bytes", "Payload received."), ()),
    "peers_lost": (counter("peers_lost", "Peers that were lost."), ()),
    "messages_dropped": (
        counter("messages_dropped", "Datagrams that found neither a receive nor room to be kept."),
        (),
    ),
    "registrations": (REGISTRATIONS, ("made",)),
    "registrations_reused": (REGISTRATIONS, ("reused",)),
    "registrations_dropped": (REGISTRATIONS, ("dropped",)),
    "messages_mapped": (LARGE_MESSAGES, ("mapped",)),
    "messages_pipelined": (LARGE_MESSAGES, ("pipelined",)),
    "messages_attached": (LARGE_MESSAGES, ("attached",)),
    "packed": (counter("packed_operations", "Operations whose pieces were packed into one buffer."), ()),
    "linear_searches": (counter("linear_searches", "Searches with masks that have no index."), ()),
    "sleeps": (counter("sleeps", "Waits that slept."), ()),
    "wakeups": (counter("wakeups", "Sleeping waits that were woken."), ()),
    "progress_calls": (counter("progress_calls", "Calls of the progress engine."), ()),
    "packet_buffers_reclaimed": (
        counter("packet_buffers_reclaimed", "Packet buffers that a device had lost, used again."),
        (),
    ),
}
"""Counters of ``ep.stats()``, each with its metric and the values of the labels after program and provider."""

LEVELS: dict[str, Family] = {
    "posted_receives": level("posted_receives", "Receives without a message."),
    "unexpected_messages": level("unexpected_messages", "Messages without a receive."),
    "unexpected_bytes": level("unexpected_bytes", "Payload of messages without a receive, kept here."),
    "announced_messages": level("announced_messages", "Messages whose payload is still at the sender."),
    "pending": level("pending_operations", "Operations in flight."),
    "backlog": level("backlog_operations", "Operations that the transport has not accepted yet."),
    "peers_up": level("peers", "Peers that are up."),
    "packet_buffers": level("packet_buffers", "Buffers into which packets can be received."),
}
"""Levels of ``ep.stats()``, each with its metric."""

MESSAGES = counter("messages", "Messages by the protocol that carried them.", "direction", "protocol")
MESSAGE_BYTES = counter("message_bytes", "Their payload.", "direction", "protocol")
MESSAGE_SIZES = Family(
    "ofipy_message_size_bytes", "histogram", (*GROUP, "direction"), "Messages by the size of their payload."
)
PEER_MESSAGES = Family(
    "ofipy_peer_messages_total", "counter", (*PEER, "direction"), "Messages of the busiest peers."
)
PEER_BYTES = Family(
    "ofipy_peer_bytes_total", "counter", (*PEER, "direction"), "Payload of the busiest peers."
)
PEER_ERRORS = Family("ofipy_peer_errors_total", "counter", PEER, "Failed operations with the busiest peers.")
ENDPOINTS = level("endpoints", "Endpoints that are open.")
STALLED = level("stalled_endpoints", "Endpoints with waiting work and no progress for a second.")
PROCESSES = Family("ofipy_processes", "gauge", (), "Processes whose statistics are read.")
UNREADABLE = Family(
    "ofipy_unreadable_processes", "gauge", (), "Processes whose open files may not be looked at."
)
INFO = Family("ofipy_info", "gauge", ("version",), "The exporter's version of ofipy; always 1.")
DROPPED_SERIES = Family(
    "ofipy_exporter_dropped_series", "gauge", ("metric",), "Series left out, because there were too many."
)

PROCESS_FAMILIES: tuple[Family, ...] = (
    INFO,
    PROCESSES,
    UNREADABLE,
    ENDPOINTS,
    STALLED,
    *dict.fromkeys(family for family, _ in COUNTERS.values()),
    *LEVELS.values(),
    MESSAGES,
    MESSAGE_BYTES,
    MESSAGE_SIZES,
    PEER_MESSAGES,
    PEER_BYTES,
    PEER_ERRORS,
    DROPPED_SERIES,
)
