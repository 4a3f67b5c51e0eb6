/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OFP_ROUND_BOUND(most): how many of a kind one round of progress handles at most. What is left waits for the next round, and
 * nothing reports it a second time. Builds of tests/explore define the macro, and draw a smaller bound; all others compile the
 * number itself.
 */
#ifndef OFIPY_BOUNDS_H
#define OFIPY_BOUNDS_H

#ifndef OFP_ROUND_BOUND
#define OFP_ROUND_BOUND(most) (most)
#endif

#endif
