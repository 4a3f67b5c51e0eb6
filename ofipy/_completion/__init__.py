# SPDX-License-Identifier: BSD-3-Clause
"""How operations end: requests, queues, counters, events, and how an event loop waits for them."""
