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

/* Whether the thread runs the garbage collector: it does so with the GIL. */
static __always_inline bool collects(const struct work *work) {
  const struct sampled_process *at = &work->at;
  __u64 state = work->states[0];
  if (at->gc_collecting == 0 || work->state_count != 1) {
    return false;
  }
  __u64 interpreter = read_word(state + at->thread_interpreter);
  if ((__u32)read_word(interpreter + at->gc_collecting) == 0) {
    return false;
  }
  __u64 gil = read_word(interpreter + at->gil);
  return (__u32)read_word(gil + at->gil_locked) == 1 &&
         read_word(gil + at->gil_last_holder) == state;
}

struct gil_search {
  struct work *work;
  struct known_thread *thread;
  __u64 thread_pointer;
  __u64 futex;
  __u32 found;
};

static long step_gil(__u32 index, struct gil_search *search) {
  struct work *work = search->work;
  struct known_thread *thread = search->thread;
  const struct sampled_process *at = &work->at;
  __u32 place = index / 2;
  KEEP(place);
  if (place >= SAMPLER_MOST_STATES || place >= SAMPLER_KNOWN_STATES) {
    return 1;
  }
  bool runs = (index & 1) == 0;
  __u64 state = runs                          ? place < work->state_count ? work->states[place] : 0
                : place < thread->state_count ? thread->states[place]
                                              : 0;
  if (state == 0 ||
      (!runs && read_word(state + at->thread_id) != search->thread_pointer)) { /* freed */
    return 0;
  }
  __u64 interpreter = read_word(state + at->thread_interpreter);
  __u64 gil = interpreter == 0 ? 0 : read_word(interpreter + at->gil);
  if (gil == 0) {
    return 0;
  }
  if ((__u32)read_word(gil + at->gil_locked) == 1 &&
      read_word(gil + at->gil_last_holder) == state) {
    search->found = SAMPLER_GIL_HELD;
    return 1;
  }
  /* The GIL contains its mutex and condition variables (Python/ceval_gil.c: take_gil()). */
  if ((search->futex >= gil && search->futex < gil + 256) ||
      is_among_waiters(at, gil, search->futex)) {
    search->found = SAMPLER_GIL_WAITED_FOR;
  } else if (search->found == SAMPLER_GIL_UNKNOWN) {
    search->found = SAMPLER_GIL_NONE;
  }
  return 0;
}

/* Checks the GIL of each interpreter in which the thread runs Python or has a state: it may be about
 * to run there. A thread holds one GIL at a time. */
static __always_inline __u8 gil_of(struct work *work, struct known_thread *thread,
                                   struct task_struct *task, bool in_kernel) {
  struct gil_search search = {.work = work,
                              .thread = thread,
                              .thread_pointer = THREAD_POINTER(task),
                              .futex = in_kernel ? awaited_futex(task) : 0};
  __u32 most = thread->state_count > work->state_count ? thread->state_count : work->state_count;
  bpf_loop(2 * most, step_gil, &search, 0); /* ends at the end of the arrays */
  return (__u8)search.found;
}

#endif
