/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rule. Another method replaces the current one if it is cheaper by a tenth: a smaller difference is noise. The
 * cost of the other methods is measured by trials, of as many messages as the caller says. A trial ends early if one of
 * its messages costs too much.
 *
 * Trials may lose a fiftieth of the time of all messages. So fifty messages pay for one by a method of twice the cost,
 * and a method of equal cost is tried at every sixteenth message. The first trial of a method may exceed the allowance;
 * later messages then pay it back.
 */
#include "base/choice.h"

/* The share of time that trials may lose: one part in TRIAL_SHARE. */
#define TRIAL_SHARE 50
/* Minimal number of messages by the current method between two trials. */
#define TRIAL_PAUSE 16
/*
 * A trial ends early with a message that costs HOPELESS times as much as the current method. The first message may cost
 * more, since it may wake the sender, which is awake for the next ones.
 */
#define HOPELESS 2
#define HOPELESS_FIRST 4
/*
 * The allowance is capped at the loss of one message by a method that costs DEAREST times as much. Dearer methods are
 * not tried more rarely.
 */
#define DEAREST 4
/*
 * The debt of a trial, for example one in which the process did not run, is capped at DEEPEST_DEBT times the current
 * cost.
 */
#define DEEPEST_DEBT 8
/* A cost counts as cheaper below 9 tenths of the current one. */
#define CHEAPER 9
#define OF 10

/* Picoseconds of a nanosecond. */
#define PS UINT64_C(1000)

static uint32_t compute_median(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;

    return c < low ? low : c > high ? high : c;
}

/* ps per KiB; 0: not known. */
static uint64_t find_cost(const struct shm_choice *choice, uint32_t method)
{
    const uint32_t *costs = choice->costs[method];

    return compute_median(costs[0], costs[1], costs[2]);
}

static bool has_method(uint32_t methods, uint32_t method) { return methods & SHM_METHOD_BIT(method); }

/* The cheapest method with a known cost; the first method while none is known. */
static uint32_t find_cheapest_method(const struct shm_choice *choice, uint32_t methods)
{
    uint32_t best = SHM_METHODS_MAX, first = SHM_METHODS_MAX;

    for (uint32_t method = 0; method < SHM_METHODS_MAX; method++) {
        if (!has_method(methods, method))
            continue;
        if (first == SHM_METHODS_MAX)
            first = method;
        if (find_cost(choice, method) &&
            (best == SHM_METHODS_MAX || find_cost(choice, method) < find_cost(choice, best)))
            best = method;
    }
    return best == SHM_METHODS_MAX ? first : best;
}

uint32_t shm_choice_find_method(const struct shm_choice *choice, uint32_t methods)
{
    uint32_t best = find_cheapest_method(choice, methods);
    uint64_t now = find_cost(choice, choice->current), then = find_cost(choice, best);

    return !has_method(methods, choice->current) || (then && now && then * OF < now * CHEAPER) ? best : choice->current;
}

/* The method to try next: the others in turn. SHM_METHODS_MAX: there is no other. */
static uint32_t choose_next_trial(const struct shm_choice *choice, uint32_t methods)
{
    for (uint32_t step = 1; step <= SHM_METHODS_MAX; step++) {
        uint32_t method = (choice->tried + step) % SHM_METHODS_MAX;

        if (has_method(methods, method) && method != choice->current)
            return method;
    }
    return SHM_METHODS_MAX;
}

/* The expected loss of a trial, ps per KiB. Only for methods with a known cost. */
static uint64_t compute_trial_loss(const struct shm_choice *choice, uint32_t method, uint32_t length)
{
    uint64_t cost = find_cost(choice, method), current = find_cost(choice, choice->current);
    uint64_t loss = cost > current ? length * (cost - current) : 0;

    return loss < (DEAREST - 1) * current ? loss : (DEAREST - 1) * current;
}

static bool can_try_method(const struct shm_choice *choice, uint32_t method, uint32_t length)
{
    /* Without a cost to compare with, a trial says nothing. */
    if (choice->since < TRIAL_PAUSE || !find_cost(choice, choice->current))
        return false;
    return !choice->costs[method][0] || choice->allowance >= (int64_t)compute_trial_loss(choice, method, length);
}

uint32_t shm_choice_choose_method(struct shm_choice *choice, const struct shm_choice_trials *trials, uint32_t methods,
                                  bool alone, bool *trial)
{
    uint32_t next, length;

    if (choice->left && has_method(methods, choice->tried)) {
        choice->left--;
        *trial = true;
        return choice->tried;
    }
    choice->left = 0;
    choice->current = (uint8_t)shm_choice_find_method(choice, methods);
    next = choose_next_trial(choice, methods);
    length = next < SHM_METHODS_MAX ? trials->lengths[next] : 0;
    *trial = !alone && length && can_try_method(choice, next, length);
    if (!*trial) {
        choice->since++;
        return choice->current;
    }
    choice->since = 0;
    choice->tried = (uint8_t)next;
    choice->left = (uint8_t)(length - 1);
    choice->learned = 0;
    return next;
}

static void fill_costs(uint32_t *costs, uint64_t cost)
{
    for (uint32_t i = 0; i < SHM_CHOICE_SAMPLES; i++)
        costs[i] = (uint32_t)cost;
}

static void add_cost(struct shm_choice *choice, uint32_t method, uint64_t cost)
{
    uint32_t *costs = choice->costs[method];

    if (!costs[0])
        fill_costs(costs, cost);
    for (uint32_t i = SHM_CHOICE_SAMPLES - 1; i; i--)
        costs[i] = costs[i - 1];
    costs[0] = (uint32_t)cost;
}

/*
 * The mean of the trial, without its first message where it has more. What was known before is not mixed in: between two trials much
 * may have changed.
 */
static void add_trial_cost(struct shm_choice *choice, uint32_t method, uint64_t cost)
{
    uint64_t others = choice->learned > 1 ? choice->learned - 1u : 0;

    fill_costs(choice->costs[method], (choice->costs[method][0] * others + cost) / (others + 1));
    choice->learned++;
}

void shm_choice_store_cost(struct shm_choice *choice, uint32_t method, bool trial, uint64_t length, uint64_t ns)
{
    uint64_t cost = ns * 1024 * PS / length;
    int64_t current, most;

    cost = cost < 1 ? 1 : cost > UINT32_MAX ? UINT32_MAX : cost;
    if (trial)
        add_trial_cost(choice, method, cost);
    else
        add_cost(choice, method, cost);
    current = (int64_t)find_cost(choice, choice->current);
    most = (DEAREST - 1) * current;
    if (trial && (int64_t)cost >= (choice->learned > 1 ? HOPELESS : HOPELESS_FIRST) * current)
        choice->left = 0;
    if (!trial)
        choice->allowance += current / TRIAL_SHARE;
    else if ((int64_t)cost > current)
        choice->allowance -= (int64_t)cost - current;
    if (choice->allowance < -DEEPEST_DEBT * current)
        choice->allowance = -DEEPEST_DEBT * current;
    if (choice->allowance > most)
        choice->allowance = most;
}

bool shm_choice_has_open_trial(const struct shm_choice *choice) { return choice->left && choice->learned; }

uint64_t shm_choice_compute_cost(const struct shm_choice *choice, uint32_t method, uint64_t length)
{
    return find_cost(choice, method) * length / 1024 / PS;
}
