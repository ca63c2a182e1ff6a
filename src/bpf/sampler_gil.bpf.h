/* Whether the sampled thread holds the GIL or waits for it. */
#ifndef PYINJECT_BPF_SAMPLER_GIL_BPF_H
#define PYINJECT_BPF_SAMPLER_GIL_BPF_H

#include "sampler_work.bpf.h"

/* A condition variable of musl is a list of its waiters. Each waits for a futex in a node on its
 * own stack, the newest node is the head, and a node begins with the address of the next newer one
 * (src/thread/pthread_cond_timedwait.c). */
enum { kHeadOfWaiters = 8, kFutexOfWaiter = 20, kMostWaiters = 1024 };

/* struct _gil_runtime_state from its member `locked` on: a count of switches, a condition variable
 * of 48 bytes, a mutex of 40, and another such pair. */
enum { kConditionOfGil = 16, kSecondConditionOfGil = 16 + 48 + 40 };

static long step_waiter(__u32 index, __u64 *node) {
  __u64 newer = read_word(*node);
  (void)index;
  if (newer == 0) {
    return 1;
  }
  *node = newer;
  return 0;
}

static __always_inline bool is_among_waiters(const struct sampled_process *at, __u64 gil,
                                             __u64 futex) {
  __u64 locked = gil + at->gil_locked;
  __u64 first = read_word(locked + kConditionOfGil + kHeadOfWaiters);
  __u64 second = read_word(locked + kSecondConditionOfGil + kHeadOfWaiters);
  if (futex == 0 || (first == 0 && second == 0)) {
    return false;
  }
  __u64 node = futex - kFutexOfWaiter;
  bpf_loop(kMostWaiters, step_waiter, &node, 0);
  return node == first || node == second;
}

/* Checks every interpreter in which the thread has a state. */
static __always_inline __u8 gil_of(struct work *work, struct task_struct *task, bool in_kernel) {
  const struct sampled_process *at = &work->at;
  __u64 futex = in_kernel ? awaited_futex(task) : 0;
  __u8 found = SAMPLER_GIL_UNKNOWN;
  for (__u32 i = 0; i < SAMPLER_MOST_STATES && i < work->state_count; ++i) {
    __u64 interpreter = read_word(work->states[i] + at->thread_interpreter);
    __u64 gil = interpreter == 0 ? 0 : read_word(interpreter + at->gil);
    if (gil == 0) {
      continue;
    }
    if ((__u32)read_word(gil + at->gil_locked) == 1 &&
        read_word(gil + at->gil_last_holder) == work->states[i]) {
      return SAMPLER_GIL_HELD;
    }
    /* The GIL contains its mutex and condition variables (Python/ceval_gil.c: take_gil()). */
    if ((futex >= gil && futex < gil + 256) || is_among_waiters(at, gil, futex)) {
      found = SAMPLER_GIL_WAITED_FOR;
    } else if (found == SAMPLER_GIL_UNKNOWN) {
      found = SAMPLER_GIL_NONE;
    }
  }
  return found;
}

#endif
