# SPDX-License-Identifier: BSD-3-Clause
"""What an endpoint does: messages, multi-receive, RMA, atomics, raw posts, connections."""
