/* The thread states of the sampled thread. */
#ifndef PYINJECT_BPF_SAMPLER_STATES_BPF_H
#define PYINJECT_BPF_SAMPLER_STATES_BPF_H

#include "sampler_work.bpf.h"

struct search {
  struct work *work;
  __u64 thread_pointer;
  __u64 interpreter;
  __u64 state;
};

static long step_state(__u32 index, struct search *search) {
  struct work *work = search->work;
  const struct sampled_process *at = &work->at;
  (void)index;
  if (search->state == 0) {
    search->interpreter = read_word(search->interpreter + at->next_interpreter);
    if (search->interpreter == 0) {
      return 1;
    }
    search->state = read_word(search->interpreter + at->threads_head);
    return 0;
  }
  if (read_word(search->state + at->thread_id) == search->thread_pointer) {
    __u32 place = work->state_count;
    KEEP(place);
    if (place >= SAMPLER_MOST_STATES) {
      return 1;
    }
    work->states[place] = search->state;
    work->state_count = place + 1;
    search->state = 0; /* a thread has one state per interpreter */
    return 0;
  }
  search->state = read_word(search->state + at->next_thread);
  return 0;
}

/* The innermost frame that the thread state at STATE publishes; 0: it runs no Python. */
static __always_inline __u64 published_frame(const struct sampled_process *at, __u64 state) {
  __u64 frame = read_word(state + at->current_frame);
  return frame != 0 && at->frame_in_cframe ? read_word(frame) : frame;
}

/* kMostSteps: of bpf_loop(). kPause: after a search in vain, a processor waits this many times the
 * duration of that search before another one. */
enum { kMostSteps = 8192, kPause = 32 };

/* Stores this thread's state of each interpreter, the newest interpreter first, in work->states.
 * False: too many states, or an endless list. */
static __always_inline bool search_states(struct work *work, __u64 thread_pointer) {
  const struct sampled_process *at = &work->at;
  __u64 newest = read_word(at->interpreters);
  if (newest == 0) {
    return true;
  }
  struct search search = {.work = work,
                          .thread_pointer = thread_pointer,
                          .interpreter = newest,
                          .state = read_word(newest + at->threads_head)};
  return bpf_loop(kMostSteps, step_state, &search, 0) < kMostSteps;
}

/* Whether the last sample's STATE is still the thread's, and its only one. The state may have been
 * freed, which clears nothing in it, but then it runs nothing. */
static __always_inline bool is_still(const struct sampled_process *at, __u64 state,
                                     __u64 thread_pointer) {
  return state != 0 && read_word(state + at->thread_id) == thread_pointer &&
         published_frame(at, state) != 0;
}

/* Returns 0, or why there are no states (enum sampler_flags). The duration of a search grows with
 * the list, and nothing else runs on this processor meanwhile. So threads without a state are
 * searched for only now and then, to detect when they have become Python threads. */
static __always_inline __u8 find_states(struct work *work, struct known_thread *thread,
                                        __u64 thread_pointer) {
  const struct sampled_process *at = &work->at;
  __u64 newest = read_word(at->interpreters);
  bool single = newest != 0 && read_word(newest + at->next_interpreter) == 0;
  if (single && is_still(at, thread->state, thread_pointer)) {
    work->states[0] = thread->state;
    work->state_count = 1;
    count(SAMPLER_COUNT_FOUND);
    return 0;
  }
  work->state_count = 0;
  __u64 now = bpf_ktime_get_ns();
  if (thread->in_vain == 0 || now >= work->search_after) {
    bool whole = search_states(work, thread_pointer);
    work->state_count = whole ? work->state_count : 0;
    thread->in_vain = !whole                   ? SAMPLER_UNREADABLE
                      : work->state_count == 0 ? SAMPLER_NO_STATE
                                               : 0;
    thread->state = single && work->state_count != 0 ? work->states[0] : 0;
    if (thread->in_vain != 0) {
      work->search_after = now + kPause * (bpf_ktime_get_ns() - now);
    }
  }
  if (work->state_count != 0) {
    count(SAMPLER_COUNT_SEARCHED);
  }
  return (__u8)thread->in_vain;
}

#endif
