# SPDX-License-Identifier: BSD-3-Clause
"""Round trips to a server that echoes, over each provider that leads there: what ``ofipy ping`` does."""
