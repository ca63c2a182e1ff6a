/* The running asyncio task. */
#ifndef PYINJECT_BPF_SAMPLER_TASKS_BPF_H
#define PYINJECT_BPF_SAMPLER_TASKS_BPF_H

#include "sampler_names.bpf.h"
#include "sampler_work.bpf.h"

struct text_hash {
  const struct sampled_name *name;
  __u64 fingerprint;
};

static long step_hash(__u32 index, struct text_hash *hash) {
  const struct sampled_name *name = hash->name;
  __u64 at = (__u64)index * sizeof(__u64);
  __u64 left = name->head.name_bytes - at;
  KEEP(at);
  if (at >= SAMPLER_MOST_QUALNAME) {
    return 1;
  }
  __u64 word = *(const __u64 *)(name->bytes + at);
  hash->fingerprint =
      sampler_mix(hash->fingerprint, left < sizeof word ? word << 8 * (sizeof word - left) : word);
  return 0;
}

/* A fingerprint of all that is reported about a task. A new task often has the address of an
 * earlier one, and its name that of the earlier name, but hardly ever the same characters. */
static __always_inline __u64 task_fingerprint(const struct sampled_name *name) {
  __u64 bytes = name->head.name_bytes;
  struct text_hash hash = {
      .name = name,
      .fingerprint = sampler_mix((__u32)name->head.first_line, bytes << 8 | name->head.name_width)};
  bpf_loop((bytes + sizeof(__u64) - 1) / sizeof(__u64), step_hash, &hash, 0);
  return hash.fingerprint;
}

/* The task that the thread runs; 0: none. If a task runs code in another interpreter, which runs a
 * task as well, the inner one counts: the C stack grows towards lower addresses. */
static __always_inline __u64 running_task(const struct work *work) {
  const struct sampled_process *at = &work->at;
  __u64 found = 0;
  __u64 place = 0;
  for (__u32 i = 0; i < SAMPLER_MOST_STATES && i < work->state_count; ++i) {
    __u64 task = read_word(work->states[i] + at->running_task);
    if (task != 0 && (found == 0 || work->places[i] < place)) {
      found = task;
      place = work->places[i];
    }
  }
  return found;
}

/* The number of the running task's name; 0: none. */
static __noinline __u32 task_of(struct work *work) {
  struct sampled_name *name = new_name();
  if (!work || !name) {
    return 0;
  }
  const struct sampled_process *at = &work->at;
  __u64 task = at->running_task == 0 ? 0 : running_task(work);
  __u64 text = task == 0 ? 0 : read_word(task + at->task_name);
  if (text == 0) {
    return 0;
  }
  name->head.kind = SAMPLER_TASK;
  name->head.pid = work->stack.head.pid;
  name->head.first_line = 0;
  name->head.file_bytes = 0;
  name->head.line_bytes = 0;
  struct text put = {0, 0, 0};
  if (read_word(text + at->type) == at->text_type) {
    put = put_text(name, 0, SAMPLER_MOST_QUALNAME, at, text);
    if (put.width == 0) {
      count(SAMPLER_COUNT_LOST_NAMES);
      return 0;
    }
  } else { /* an int until the name is first requested: Modules/_asynciomodule.c */
    name->head.first_line = (__s32)read_word(text + at->int_digits); /* the lowest 30 bits */
  }
  name->head.name_bytes = put.bytes;
  name->head.name_width = put.width;
  name->head.name_cut = put.cut;
  struct object_key key = {.address = task, .pid = work->stack.head.pid};
  __u64 fingerprint = task_fingerprint(name);
  __u32 number = known_number(&key, fingerprint);
  if (number != 0) {
    return number;
  }
  number = new_number();
  name->head.number = number;
  if (put_record(name, put.bytes) != 0) {
    count(SAMPLER_COUNT_LOST_NAMES);
    return 0;
  }
  remember(&key, fingerprint, number);
  return number;
}

#endif
