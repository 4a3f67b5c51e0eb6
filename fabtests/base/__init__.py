# SPDX-License-Identifier: BSD-3-Clause
"""What the programs share: options, set-up, timing, verification, output, pairs of worker processes.

``ofipy pingpong`` imports this package too, when it runs: the measuring code stands here once because it
needs nothing but the public interface, and the interface must not depend on its own benchmarks. Both packages
ship in one wheel.
"""
