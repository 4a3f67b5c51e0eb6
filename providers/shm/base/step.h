/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every point of the protocol at which a process may die, by name, in the order in which a transfer passes them. A
 * build with OFP_SHM_KILL_STEPS (tests only) raises SIGKILL at the step that OFIPY_SHM_KILL_STEP names; "name:3" means
 * the third pass, and OFIPY_SHM_STEP_SIGNAL names another signal. In other builds OFP_SHM_STEP is empty.
 */
#ifndef SHM_STEP_H
#define SHM_STEP_H

#define SHM_STEPS(STEP)                                                                                                \
    STEP(before_hello)                                                                                                 \
    STEP(after_hello)                                                                                                  \
    STEP(before_welcome)                                                                                               \
    STEP(after_welcome)                                                                                                \
    STEP(before_ack)                                                                                                   \
    STEP(after_ack)                                                                                                    \
    STEP(before_claim)                                                                                                 \
    STEP(after_claim)                                                                                                  \
    STEP(after_tail)                                                                                                   \
    STEP(after_content)                                                                                                \
    STEP(after_publish)                                                                                                \
    STEP(before_wake)                                                                                                  \
    STEP(after_wake)                                                                                                   \
    STEP(bounce_taken)                                                                                                 \
    STEP(bounce_filled)                                                                                                \
    STEP(bounce_sent)                                                                                                  \
    STEP(bounce_received)                                                                                              \
    STEP(announce_retained)                                                                                            \
    STEP(announce_sent)                                                                                                \
    STEP(arena_asked)                                                                                                  \
    STEP(arena_answered)                                                                                               \
    STEP(pull_started)                                                                                                 \
    STEP(pull_piece)                                                                                                   \
    STEP(before_done)                                                                                                  \
    STEP(after_done)                                                                                                   \
    STEP(before_clear)                                                                                                 \
    STEP(after_clear)                                                                                                  \
    STEP(push_started)                                                                                                 \
    STEP(push_fragment)                                                                                                \
    STEP(fragment_received)                                                                                            \
    STEP(visiting)                                                                                                     \
    STEP(visited)                                                                                                      \
    STEP(noticed)                                                                                                      \
    STEP(request_sent)                                                                                                 \
    STEP(request_served)                                                                                               \
    STEP(request_answered)                                                                                             \
    STEP(before_slot_free)                                                                                             \
    STEP(after_slot_free)                                                                                              \
    STEP(before_closing)                                                                                               \
    STEP(after_closing)                                                                                                \
    STEP(goodbye_sent)

enum shm_step {
#define SHM_STEP_ENUM(name) SHM_STEP_##name,
    SHM_STEPS(SHM_STEP_ENUM)
#undef SHM_STEP_ENUM
        SHM_STEP_COUNT
};

#ifdef OFP_SHM_KILL_STEPS
extern const char *const shm_step_names[SHM_STEP_COUNT];
void shm_step_handle(enum shm_step step);
#define OFP_SHM_STEP(name) shm_step_handle(SHM_STEP_##name)
#else
#define OFP_SHM_STEP(name) ((void)0)
#endif

#endif
