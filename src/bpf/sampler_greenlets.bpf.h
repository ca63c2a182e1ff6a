/* The functions below a greenlet: those of its parent, and of the parent's parents. */
#ifndef PYINJECT_BPF_SAMPLER_GREENLETS_BPF_H
#define PYINJECT_BPF_SAMPLER_GREENLETS_BPF_H

#include "sampler_frames.bpf.h"
#include "sampler_names.bpf.h"
#include "sampler_work.bpf.h"

/* greenlet 3.0 to 3.5. Type PyGreenlet: weakreflist, dict and pimpl follow the head of the object.
 * class Greenlet (TGreenlet.hpp) has the pointer to its functions, since 3.1.1 the greenlet itself, the
 * exception state (3 words), the arguments (2), the stack state (5: start, stop, copy, saved,
 * previous), and python_state, which begins with a context and the top frame, and whose size depends
 * on CPython. Behind it, class UserGreenlet has the main greenlet, the callable and the parent. */
enum {
  kPimplWord = 2,
  kStackStart = 6,
  kStackStop,
  kStackCopy,
  kStackSaved,
  kTopFrame = 12,
  kParentBehindMain = 2,
  kGreenletWords = 28, /* more than the parent needs in all known versions */
  kMostParents = 8,
  kMostParentFrames = SAMPLER_MOST_PLACED - 2,
};

struct lineage {
  struct work *work;
  __u64 main;
  __u64 parent;
  __u64 frame;
};

/* What follows the head of the object at ADDRESS. */
static __always_inline __u64 behind_head(const struct work *work, __u64 address) {
  return address + work->at.type + sizeof(__u64);
}

/* Reads the implementation of the greenlet at ADDRESS, as if it were of the first versions. */
static __always_inline bool read_greenlet(struct work *work, __u64 address) {
  __u64 at = read_word(behind_head(work, address) + kPimplWord * sizeof(__u64));
  __u64 later = read_word(at + sizeof(__u64)) == address ? sizeof(__u64) : 0;
  KEEP(later);
  return at != 0 && bpf_probe_read_user(work->greenlet, kGreenletWords * sizeof(__u64),
                                        (void *)(at + later)) == 0;
}

/* greenlet links the frames of a greenlet that does not run without their entry frames. Those of
 * 3.0.0 to 3.0.2 are on the C stack, of which a part may be in a copy. */
static long step_parent_frame(__u32 index, struct lineage *lineage) {
  struct work *work = lineage->work;
  const struct sampled_process *at = &work->at;
  __u64 address = lineage->frame;
  __u64 behind = address - work->greenlet[kStackStart];
  (void)index;
  if (address == 0) {
    return 1;
  }
  if (behind < work->greenlet[kStackSaved]) {
    address = work->greenlet[kStackCopy] + behind;
  }
  __u32 place = work->walk.count;
  KEEP(place);
  if (place >= kMostParentFrames || place >= SAMPLER_MOST_PLACED || (address & 7) != 0 ||
      ++work->parent_steps > SAMPLER_MOST_PLACED ||
      bpf_probe_read_user(work->frame, SAMPLER_FRAME_BYTES, (void *)address) != 0) {
    work->walk.flags |= SAMPLER_TRUNCATED;
    return 1;
  }
  __u32 owner = at->owner & 0x7f;
  KEEP(owner);
  owner &= 0x7f;
  lineage->frame = word_of(work->frame, at->previous, 0x78);
  if (work->frame[owner] >= python.first_entry_owner) {
    return 0;
  }
  __u64 code = word_of(work->frame, at->executable, 0x78) & ~at->executable_tags;
  __u64 instruction = word_of(work->frame, at->instruction, 0x78);
  __s64 number = number_of_code(work, code);
  if (number == kNoCode) {
    work->walk.flags |= SAMPLER_TRUNCATED;
    return 1;
  }
  put_word(work, (__u32)number, (__u32)instruction_offset(work, code, instruction) & SAMPLER_OFFSET);
  return 0;
}

static long step_field(__u32 index, struct lineage *lineage) {
  __u32 word = kTopFrame + 1 + index;
  KEEP(word);
  if (lineage->work->greenlet[word & 31] != lineage->main) {
    return 0;
  }
  lineage->parent = lineage->work->greenlet[(word + kParentBehindMain) & 31];
  return 1;
}

/* Goes from a greenlet to its parent. */
static long step_parent(__u32 index, struct lineage *lineage) {
  struct work *work = lineage->work;
  (void)index;
  lineage->parent = 0;
  bpf_loop(kGreenletWords - kTopFrame - 1 - kParentBehindMain, step_field, lineage, 0);
  __u64 parent = lineage->parent;
  if (parent == 0 || !read_greenlet(work, parent)) {
    return 1;
  }
  __u64 top = work->greenlet[kTopFrame];
  if (top != 0) { /* without one, it has not started yet, or has ended */
    put_word(work, SAMPLER_PARENT, 0);
    lineage->frame = read_word(behind_head(work, top) + sizeof(__u64));
    bpf_loop(SAMPLER_MOST_PLACED, step_parent_frame, lineage, 0);
  }
  return parent == lineage->main || (work->walk.flags & SAMPLER_TRUNCATED) != 0;
}

/* Adds the functions of the parents of the greenlet that runs; false: none. During a switch they may be
 * those of another one. */
CHECKED_ONCE __u8 read_parents(struct work *work, __u64 thread_pointer) {
  if (!work) {
    return 0;
  }
  __u64 block = thread_locals(thread_pointer, work->at.greenlet_module);
  __u64 own[2] = {0, 0};
  if (block == 0 || bpf_probe_read_user(own, sizeof own, (void *)block) != 0) {
    return 0;
  }
  /* g_thread_state_global: a pointer, 1 before its first use; and the compiler's flag for it. */
  __u64 state = own[0] > 1 ? own[0] : own[1];
  __u64 greenlets[2] = {0, 0}; /* class ThreadState: the main one, and the one that runs */
  if (state <= 1 || bpf_probe_read_user(greenlets, sizeof greenlets, (void *)state) != 0 ||
      greenlets[0] == greenlets[1] || !read_greenlet(work, greenlets[1])) {
    return 0;
  }
  if (work->stack_pointer >= work->greenlet[kStackStop]) {
    return 0; /* it does not run */
  }
  struct lineage lineage = {.work = work, .main = greenlets[0]};
  __u32 before = work->walk.count;
  work->parent_steps = 0;
  bpf_loop(kMostParents, step_parent, &lineage, 0);
  return work->walk.count > before;
}

#endif
