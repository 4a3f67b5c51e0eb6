/* SPDX-License-Identifier: BSD-3-Clause */
/* All programs. */
#include "program.h"

extern const struct program program_two_takers, program_exchange, program_askers, program_flood, program_loop,
    program_helped, program_set_aside, program_cancel, program_close, program_lost, program_cycle;

const struct program *const programs[] = {&program_two_takers, &program_exchange, &program_askers,    &program_flood,
                                          &program_loop,       &program_helped,   &program_set_aside, &program_cancel,
                                          &program_close,      &program_lost,     &program_cycle,     NULL};
