# SPDX-License-Identifier: BSD-3-Clause
"""ofipy beside its peers: one run, round by round in turn, medians with their spread.

Rules that hold for every contender:

- Each side is a process of its own that lives for the whole run, pinned to one of two cores. A contender
  that waits for its turn sleeps.
- One send and one receive buffer a side, ordinary numpy arrays unless the mode says otherwise; all messages
  of a window use the same two.
- Every round has new memory, of ofipy and of its peers. Windows are timed after one that is not, and after 64
  messages at least. So a mode has the same figure alone and beside others.
- Latency: half a round trip. A round times several chunks of round trips without looking at the clock in
  between and keeps the median chunk; percentiles come from round trips timed one by one afterwards.
- Bandwidth: the sender times from its first send until an acknowledgement of the window has come back. In
  the modes `rewritten` the sender fills its buffer anew before every message; that happens before the clock
  starts, so that the timed part is the same for all. Nor is the reading timed that the target of writes does
  between two windows in the mode `target-reads`.
"""
