# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy run``: local processes, or over ssh, as one job. No scheduler; see docs/explanation/jobs.md."""
