/* The thread states of the sampled thread. */
#ifndef PYINJECT_BPF_SAMPLER_STATES_BPF_H
#define PYINJECT_BPF_SAMPLER_STATES_BPF_H

#include "sampler_work.bpf.h"

struct search {
  struct work *work;
  struct known_thread *thread;
  __u64 thread_pointer;
  __u64 main;
  __u64 interpreter;
  __u64 state;
  __u64 before; /* STATE's previous one in the list; 0: STATE is the head */
  __u32 restarts;
  bool too_many;
  bool unbound; /* a thread state belongs to no thread yet */
  bool torn;    /* the lists changed at each attempt */
};

enum { kMostRestarts = 4 };

/* The innermost frame that the thread state at STATE publishes; 0: it runs no Python. */
static __always_inline __u64 published_frame(const struct sampled_process *at, __u64 state) {
  __u64 frame = read_word(state + at->current_frame);
  return frame != 0 && at->frame_in_cframe ? read_word(frame) : frame;
}

/* Whether no Python runs in the thread state at STATE. */
static __always_inline bool is_idle(const struct sampled_process *at, __u64 state) {
  __u64 frame = read_word(state + at->current_frame);
  if (!at->frame_in_cframe) {
    return frame == 0;
  }
  /* The _PyCFrame that belongs to no evaluator is in the thread state itself. */
  return frame - state < kMostThreadState && read_word(frame) == 0;
}

/* Whether ADDRESS is on the stack of the sampled thread. glibc and musl put what the thread pointer
 * points to above the stack of each thread but the main one, whose stack is above everything. */
static __always_inline bool is_on_stack(const struct work *work, __u64 address,
                                        __u64 thread_pointer) {
  return address >= work->stack_pointer &&
         (address < thread_pointer || thread_pointer < work->stack_pointer);
}

/* Whether the state at STATE, which names the thread OWNER, is that of the sampled thread. In 3.12,
 * _xxsubinterpreters runs code in the state of the thread that has created the interpreter,
 * whichever thread runs it (Modules/_xxsubinterpretersmodule.c, _run_script_in_interpreter()); its
 * _PyCFrame is on the stack of that thread. */
static __always_inline bool is_own(struct search *search, __u64 state, __u64 owner) {
  const struct sampled_process *at = &search->work->at;
  if (!at->frame_in_cframe || search->interpreter == search->main) {
    return owner == search->thread_pointer;
  }
  __u64 cframe = read_word(state + at->current_frame);
  return is_on_stack(search->work, cframe, search->thread_pointer) ||
         (owner == search->thread_pointer && cframe - state < kMostThreadState);
}

/* False: too many. */
static __always_inline bool add_state(struct work *work, __u64 state) {
  if (is_idle(&work->at, state)) {
    work->idle = work->idle != 0 ? work->idle : state;
    return true;
  }
  __u32 place = work->state_count;
  KEEP(place);
  if (place >= SAMPLER_MOST_STATES) {
    return false;
  }
  work->states[place] = state;
  work->state_count = place + 1;
  return true;
}

static __always_inline void enter_interpreter(struct search *search, __u64 interpreter) {
  search->interpreter = interpreter;
  search->state = read_word(interpreter + search->work->at.threads_head);
  search->before = 0;
}

static __always_inline void start_search(struct search *search, __u64 newest) {
  search->thread->state_count = 0;
  search->work->state_count = 0;
  search->work->idle = 0;
  enter_interpreter(search, newest);
}

/* Other threads make and destroy interpreters and states meanwhile, on other processors. */
static __always_inline long search_again(struct search *search) {
  if (search->restarts == kMostRestarts) {
    search->torn = true;
    return 1;
  }
  ++search->restarts;
  start_search(search, read_word(search->work->at.interpreters));
  return 0;
}

/* The main interpreter is the last of the list. A new one becomes the head before it is linked to
 * the next (init_interpreter() in Python/pystate.c), and one that is freed no longer names it. */
static __always_inline long next_interpreter(struct search *search) {
  if (search->interpreter == search->main) {
    return 1;
  }
  __u64 next = read_word(search->interpreter + search->work->at.next_interpreter);
  if (next == 0) {
    return search_again(search);
  }
  enter_interpreter(search, next);
  return 0;
}

static long step_state(__u32 index, struct search *search) {
  struct work *work = search->work;
  const struct sampled_process *at = &work->at;
  (void)index;
  if (search->state == 0) {
    return next_interpreter(search);
  }
  /* PyThreadState begins with prev and next. A state that was freed is linked to nothing. */
  __u64 links[2] = {0, 0};
  bool read = bpf_probe_read_user(links, sizeof links,
                                  (void *)(search->state + at->next_thread - sizeof(__u64))) == 0;
  if (!read || (search->before != 0 && links[0] != search->before)) {
    return search_again(search);
  }
  __u64 owner = read_word(search->state + at->thread_id);
  search->unbound |= owner == 0;
  if (is_own(search, search->state, owner)) {
    struct known_thread *thread = search->thread;
    __u32 known = thread->state_count;
    KEEP(known);
    if (known < SAMPLER_KNOWN_STATES) {
      thread->states[known] = search->state;
    }
    thread->state_count = known + 1;
    if (!add_state(work, search->state)) {
      search->too_many = true;
      return 1;
    }
    /* Beside other interpreters a thread may have two states of the main one: 3.13 and later load
     * an extension module for another interpreter in a new state of the main one
     * (switch_to_main_interpreter() in Python/import.c). */
    if (!work->several) {
      return 1;
    }
  }
  search->before = search->state;
  search->state = links[1];
  return 0;
}

/* kMostSteps: of bpf_loop(). kPause: after a search in vain, a processor waits this many times the
 * duration of that search before another one. */
enum { kMostSteps = 8192, kMostInterpreters = 1024, kPause = 32 };

/* Looks for this thread's states of each interpreter. False: too many states, an endless list, or
 * one that changed too often. */
static __always_inline bool search_states(struct search *search, __u64 newest) {
  if (newest == 0) {
    search->thread->state_count = 0;
    return true;
  }
  search->main = read_word(search->work->at.interpreters + sizeof(__u64));
  start_search(search, newest);
  return bpf_loop(kMostSteps, step_state, search, 0) < kMostSteps && !search->too_many &&
         !search->torn;
}

struct made {
  const struct sampled_process *at;
  __u64 interpreter;
  __u64 fingerprint;
};

static long step_made(__u32 index, struct made *made) {
  const struct sampled_process *at = made->at;
  __u64 count_and_head[2] = {0, 0};
  (void)index;
  bpf_probe_read_user(count_and_head, sizeof count_and_head,
                      (void *)(made->interpreter + at->threads_head - sizeof(__u64)));
  made->fingerprint = sampler_mix(made->fingerprint, made->interpreter);
  made->fingerprint = sampler_mix(made->fingerprint, count_and_head[0]);
  made->fingerprint = sampler_mix(made->fingerprint, count_and_head[1]);
  made->interpreter = read_word(made->interpreter + at->next_interpreter);
  return made->interpreter == 0;
}

/* A fingerprint of the thread states that were ever made; 0: unknown. While it stays the same, no
 * thread gets a new state. Each interpreter counts the states that it has made, and its list begins
 * with the newest one. The word behind interpreters.main, .next_id, counts the interpreters. */
static __always_inline __u64 made_states(const struct sampled_process *at, __u64 newest) {
  struct made made = {.at = at, .interpreter = newest};
  made.fingerprint = read_word(at->interpreters + 2 * sizeof(__u64));
  return bpf_loop(kMostInterpreters, step_made, &made, 0) < kMostInterpreters ? made.fingerprint
                                                                              : 0;
}

static long step_known(__u32 index, struct search *search) {
  struct work *work = search->work;
  struct known_thread *thread = search->thread;
  if (index >= thread->state_count || index >= SAMPLER_KNOWN_STATES) {
    return 1;
  }
  KEEP(index);
  __u64 state = thread->states[index & (SAMPLER_KNOWN_STATES - 1)];
  /* It may have been freed. */
  if (read_word(state + work->at.thread_id) == search->thread_pointer) {
    add_state(work, state);
  }
  return 0;
}

/* Whether the last sample's state is still the thread's, and its only one. The state may have been
 * freed, which clears nothing in it, but then it runs nothing. */
static __always_inline bool is_still(const struct sampled_process *at,
                                     const struct known_thread *thread, __u64 thread_pointer) {
  return thread->state_count == 1 &&
         read_word(thread->states[0] + at->thread_id) == thread_pointer &&
         published_frame(at, thread->states[0]) != 0;
}

/* Returns 0, or why there are no states (enum sampler_flags). The duration of a search grows with
 * the list, and nothing else runs on this processor meanwhile. So threads without a state are
 * searched for only now and then, to detect when they have become Python threads. */
CHECKED_ONCE __u8 find_states(struct work *work, struct known_thread *thread,
                              __u64 thread_pointer) {
  if (!work || !thread) {
    return SAMPLER_NO_STATE;
  }
  const struct sampled_process *at = &work->at;
  __u64 newest = read_word(at->interpreters);
  bool several = newest != read_word(at->interpreters + sizeof(__u64));
  __u64 made = several && !at->frame_in_cframe ? made_states(at, newest) : 0;
  struct search search = {.work = work, .thread = thread, .thread_pointer = thread_pointer};
  work->several = several;
  work->state_count = 0;
  work->idle = 0;
  if (several ? made != 0 && made == thread->made : is_still(at, thread, thread_pointer)) {
    bpf_loop(SAMPLER_KNOWN_STATES, step_known, &search, 0);
    bool any = work->state_count != 0 || work->idle != 0;
    thread->in_vain = any ? 0 : SAMPLER_NO_STATE;
    if (any) {
      count(SAMPLER_COUNT_FOUND);
    }
  } else {
    __u64 now = bpf_ktime_get_ns();
    if (thread->in_vain == 0 || now >= work->search_after) {
      bool whole = search_states(&search, newest);
      bool any = work->state_count != 0 || work->idle != 0;
      thread->in_vain = !whole ? SAMPLER_UNREADABLE : any ? 0 : SAMPLER_NO_STATE;
      thread->made =
          whole && !search.unbound && thread->state_count <= SAMPLER_KNOWN_STATES ? made : 0;
      if (thread->in_vain != 0) {
        work->search_after = now + kPause * (bpf_ktime_get_ns() - now);
      } else {
        count(SAMPLER_COUNT_SEARCHED);
      }
    }
  }
  if (work->state_count == 0 && work->idle != 0) {
    work->states[0] = work->idle;
    work->state_count = 1;
  }
  return (__u8)thread->in_vain;
}

#endif
