/* Who has the GIL. */
#ifndef PYINJECT_BPF_SAMPLER_GIL_BPF_H
#define PYINJECT_BPF_SAMPLER_GIL_BPF_H

#include "sampler_work.bpf.h"

/* Of any interpreter that the thread has a state in. */
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
    /* Its mutex and its condition variables lie in it (Python/ceval_gil.c: take_gil()). */
    if (futex >= gil && futex < gil + 256) {
      found = SAMPLER_GIL_WAITED_FOR;
    } else if (found == SAMPLER_GIL_UNKNOWN) {
      found = SAMPLER_GIL_NONE;
    }
  }
  return found;
}

#endif
