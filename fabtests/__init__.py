# SPDX-License-Identifier: BSD-3-Clause
"""Command-line tests and benchmarks of ofipy, written against its public interface only."""
