/* The thread states of the thread that was hit. */
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
    search->state = 0; /* one thread has one in an interpreter */
    return 0;
  }
  search->state = read_word(search->state + at->next_thread);
  return 0;
}

/* The innermost frame that the thread state at STATE has published; 0: it runs no Python. */
static __always_inline __u64 published_frame(const struct sampled_process *at, __u64 state) {
  __u64 frame = read_word(state + at->current_frame);
  return frame != 0 && at->frame_in_cframe ? read_word(frame) : frame;
}

/* Of the steps of bpf_loop(); and how often a processor's time for a search in vain has to pass
 * before it does one again. */
enum { kMostSteps = 8192, kPause = 32 };

/* To work->states: of each interpreter, the newest first, the state of this thread; false: too many
 * states, or a list without an end. */
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

/* Whether the state of last time is the thread's, and its only one. It may have been freed, which
 * clears nothing in it; then it runs nothing, though. */
static __always_inline bool is_still(const struct sampled_process *at, __u64 state,
                                     __u64 thread_pointer) {
  return state != 0 && read_word(state + at->thread_id) == thread_pointer &&
         published_frame(at, state) != 0;
}

/* Nonzero, of enum sampler_flags: there are none. A search takes as long as the list is, and nothing
 * else runs on this processor meanwhile: of threads that are not Python's there is one now and then,
 * which tells when they have become Python's. */
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
