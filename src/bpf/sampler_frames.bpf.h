/* The walk along the frames of a thread. docs/cpython-notes.md, "Frames", explains the offsets. */
#ifndef PYINJECT_BPF_SAMPLER_FRAMES_BPF_H
#define PYINJECT_BPF_SAMPLER_FRAMES_BPF_H

#include "sampler_names.bpf.h"
#include "sampler_work.bpf.h"

/* The context of a loop's steps must be on the stack, where the verifier tracks each value: a
 * smaller context is verified faster. */
struct walker {
  struct work *work;
};

/* The offset of INSTRUCTION from the code object at CODE, as if it were in that object's own byte
 * code: it may be in a copy that belongs to the thread. */
static __always_inline __u64 instruction_offset(struct work *work, __u64 code, __u64 instruction) {
  const struct sampled_process *at = &work->at;
  if (at->thread_byte_code == 0) {
    return instruction - code;
  }
  __u64 word = word_of(work->frame, at->byte_code_index & ~7U, 0x78);
  __u32 index = (__u32)(at->byte_code_index & 4 ? word >> 32 : word);
  if (index == 0) {
    return instruction - code;
  }
  __u64 copies = read_word(code + at->thread_byte_code);
  __u64 copy = index < read_word(copies) ? read_word(copies + 8 + 8 * (__u64)index) : 0;
  return copy == 0 ? instruction - code : instruction - copy + at->byte_code;
}

/* What the instruction at INSTRUCTION does (enum sampler_does). Byte code is an array of pairs of an
 * opcode and its argument, as specialized at this moment. */
static __always_inline __u8 does_of(const struct sampled_process *at, __u64 instruction) {
  __u8 opcode = 0;
  if ((at->calls_c[0] | at->calls_c[1] | at->calls_c[2] | at->calls_c[3]) == 0 ||
      bpf_probe_read_user(&opcode, sizeof opcode, (void *)instruction) != 0) {
    return SAMPLER_DOES_UNKNOWN;
  }
  __u32 word = opcode / 64;
  KEEP(word);
  return (at->calls_c[word & 3] >> (opcode % 64) & 1) != 0 ? SAMPLER_DOES_CALL
                                                           : SAMPLER_DOES_BYTE_CODE;
}

/* Appends a word that is not a frame. */
static __always_inline void put_word(struct work *work, __u32 code, __u32 where) {
  __u32 place = work->walk.count;
  KEEP(place);
  if (place < SAMPLER_MOST_PLACED) {
    work->stack.frames[place].code = code;
    work->stack.frames[place].where = where;
    work->walk.count = place + 1;
  }
}

/* The frames that were added last share the evaluator whose entry frame is at ENTRY. */
static __always_inline void end_group(struct work *work, __u64 entry) {
  struct walk *walk = &work->walk;
  __u32 last = walk->count - 1;
  KEEP(last);
  if (last >= SAMPLER_MOST_PLACED) {
    return;
  }
  if (!walk->placed) {
    work->stack.frames[last].where |= SAMPLER_OUTERMOST;
  } else if (walk->count > walk->count_before && work->stack.frames[last].code < SAMPLER_PLACE) {
    work->stack.frames[last].where |= SAMPLER_OUTERMOST;
    put_word(work, SAMPLER_PLACE, (__u32)((entry - work->stack_pointer) / sizeof(__u64)));
  }
}

static long step_frame(__u32 index, struct walker *walker) {
  struct work *work = walker->work;
  struct walk *walk = &work->walk;
  __u64 address = walk->frame;
  (void)index;
  if (address == 0) {
    return 1;
  }
  if ((address & 7) != 0 ||
      bpf_probe_read_user(work->frame, SAMPLER_FRAME_BYTES, (void *)address) != 0) {
    walk->flags |= SAMPLER_UNREADABLE;
    return 1;
  }
  const struct sampled_process *at = &work->at;
  __u32 owner = at->owner & 0x7f;
  KEEP(owner);
  owner &= 0x7f;
  walk->frame = word_of(work->frame, at->previous, 0x78);
  __u64 code = word_of(work->frame, at->executable, 0x78) & ~at->executable_tags;
  bool entry = work->frame[owner] >= python.first_entry_owner;
  if (!entry && address - work->stack_pointer < kEvaluatorsStack) {
    /* An entry frame whose owner the evaluator has not stored yet: its code is None. */
    entry = read_word(code + at->type) != at->code_type;
  }
  if (walk->steps == 0) {
    walk->steps = 1;
  }
  if (entry && walk->steps == 1) {
    walk->steps = 2;
    walk->behind_entry = walk->frame;
    walk->first_place = walk->first_place != 0 ? walk->first_place : address;
  }
  walk->last_entry = entry;
  walk->last_generator = work->frame[owner] == python.generator_owner;
  if (entry) {
    end_group(work, address);
    return walk->full != 0;
  }
  __u32 place = walk->count;
  KEEP(place);
  if (place >= walk->end || place >= SAMPLER_MOST_PLACED) {
    walk->flags |= SAMPLER_TRUNCATED;
    walk->full = 1;
    return !walk->placed; /* the place of these frames is that of the next entry frame */
  }
  __u64 instruction = word_of(work->frame, at->instruction, 0x78);
  if (place == 0) {
    work->stack.head.does = does_of(at, instruction);
  }
  /* The same as in the frame before: recursion. */
  __s64 number = code == walk->last_code ? walk->last_number : number_of_code(work, code);
  if (number == kNoCode) {
    walk->flags |= SAMPLER_UNREADABLE;
    return 1;
  }
  walk->last_code = code;
  walk->last_number = (__u32)number;
  work->stack.frames[place].code = (__u32)number;
  work->stack.frames[place].where = (__u32)instruction_offset(work, code, instruction) & SAMPLER_OFFSET;
  walk->count = place + 1;
  return 0;
}

struct register_search {
  struct work *work;
  __u64 found;
};

static __always_inline bool is_linked_frame(struct work *work, __u64 address) {
  const struct sampled_process *at = &work->at;
  if (address == 0 || (address & 7) != 0 ||
      bpf_probe_read_user(work->frame, SAMPLER_FRAME_BYTES, (void *)address) != 0) {
    return false;
  }
  __u64 previous = word_of(work->frame, at->previous, 0x78);
  __u64 code = word_of(work->frame, at->executable, 0x78) & ~at->executable_tags;
  return previous != 0 && (previous & 7) == 0 && code != 0 &&
         read_word(code + at->type) == at->code_type;
}

static long step_register(__u32 index, struct register_search *search) {
  struct work *work = search->work;
  __u64 address = work->registers[index & 15];
  if (is_linked_frame(work, address)) {
    search->found = address;
    return 1;
  }
  return 0;
}

static long step_register_of_cframe(__u32 index, struct register_search *search) {
  struct work *work = search->work;
  __u64 address = work->registers[index & 15];
  if (address == 0 || (address & 7) != 0 || address == work->walk.cframe) {
    return 0; /* the one in front, whose frame was wrong, is in a register, too */
  }
  __u64 frame = read_word(address);
  if (frame != 0 && is_linked_frame(work, frame)) {
    search->found = frame;
    return 1;
  }
  return 0;
}

/* During some instructions the innermost frame is not linked to the previous one: when a generator
 * yields, and when an evaluator starts, which in 3.12 first installs its own _PyCFrame and fills it
 * in later. The frame to be stored next is in a register, and so is the previous _PyCFrame. */
static __always_inline __u64 frame_in_registers(struct work *work, bool by_cframe) {
  struct register_search search = {.work = work};
  bpf_loop(SAMPLER_REGISTERS, by_cframe ? (void *)step_register_of_cframe : (void *)step_register,
           &search, 0);
  return search.found;
}

/* The attempts to make after the walk from the frame that the thread state publishes. The last one
 * repeats that walk, which at least yields the innermost frames. */
enum {
  kTryPublished,
  kTryRestOfIt,
  kTryCframe,
  kTryFrame,
  kTryCframeBehind,
  kTryPublishedAgain,
  kTries = 5, /* kTryRestOfIt or kTryCframe is skipped, or more */
};

/* The frame at which to continue or restart the walk; 0: none. */
static __always_inline __u64 next_try(struct work *work) {
  struct walk *walk = &work->walk;
  if (walk->what == kTryRestOfIt) {
    return frame_in_registers(work, false);
  }
  walk->flags = walk->flags_before;
  walk->count = walk->count_before;
  walk->first_place = 0;
  return walk->what == kTryCframe         ? frame_in_registers(work, true)
         : walk->what == kTryFrame        ? frame_in_registers(work, false)
         : walk->what == kTryCframeBehind ? walk->behind_cframe
         : walk->stale                    ? 0
                                          : walk->published;
}

/* Whether the walk began behind the wrong evaluator: a _PyCFrame that is not filled in yet often
 * contains a frame of an earlier one, or its entry frame, and registers may have such a frame, too.
 * An evaluator that runs has its entry frame on the C stack, next to its _PyCFrame, and what the
 * entry frame is linked to stays the innermost frame of the previous evaluator. */
static __always_inline bool is_stale(const struct work *work) {
  const struct walk *walk = &work->walk;
  if (!work->at.frame_in_cframe || walk->steps != 2) {
    return false;
  }
  /* C code may run on another stack, which is farther away. */
  bool left = work->stack_pointer - walk->first_place - 1 < kMostLeftStack;
  return left ||
         (walk->what == kTryPublished &&
          (walk->behind_entry != walk->behind_cframe ||
           walk->first_place - walk->cframe + kEvaluatorsStack > 2 * kEvaluatorsStack));
}

/* Whether the walk has ended with the outermost frame of a greenlet that is about to switch: its
 * frames are linked without their entry frames (greenlet's Greenlet::expose_frames()). A generator
 * that yields is not linked to its caller, and in 3.12 an evaluator that starts may not be. */
static __always_inline bool is_exposed(const struct work *work) {
  const struct walk *walk = &work->walk;
  return walk->what == kTryPublished && !walk->placed && walk->frame == 0 && !walk->last_entry &&
         !walk->last_generator && walk->count - walk->count_before > work->at.frame_in_cframe;
}

static long step_try(__u32 index, struct walker *walker) {
  struct work *work = walker->work;
  struct walk *walk = &work->walk;
  const struct sampled_process *at = &work->at;
  (void)index;
  if (walk->what != kTryPublished) {
    walk->frame = next_try(work);
  }
  bool any = walk->frame != 0 || (walk->what == kTryPublished && walk->may_be_empty);
  walk->steps = 0;
  walk->last_entry = 1; /* an empty walk counts as complete */
  walk->last_generator = 0;
  bpf_loop(3 * SAMPLER_MOST_FRAMES, step_frame, walker, 0);
  bool readable = walk->flags == walk->flags_before;
  bool stale = is_stale(work);
  if (readable && !stale && is_exposed(work)) {
    walk->flags |= SAMPLER_UNGROUPED;
    return 1;
  }
  if ((walk->flags & SAMPLER_TRUNCATED) ||
      (readable && walk->last_entry && !stale && any)) {
    return 1;
  }
  if (walk->what == kTryPublishedAgain) {
    walk->flags |= SAMPLER_UNREADABLE; /* its outer functions were not found */
    return 1;
  }
  if (walk->what == kTryPublished) {
    walk->stale = stale;
    walk->what = readable && !stale && (walk->last_generator || !at->frame_in_cframe)
                     ? kTryRestOfIt
                     : kTryCframe;
  } else if (walk->what == kTryRestOfIt) {
    walk->what = kTryCframeBehind;
  } else {
    ++walk->what;
  }
  if (!at->frame_in_cframe && walk->what != kTryRestOfIt) {
    walk->what = kTryPublishedAgain;
  }
  return 0;
}

static long step_walk(__u32 index, struct walker *walker) {
  struct work *work = walker->work;
  struct walk *walk = &work->walk;
  const struct sampled_process *at = &work->at;
  if (index >= work->state_count || index >= SAMPLER_MOST_STATES) {
    return 1;
  }
  KEEP(index);
  index &= SAMPLER_MOST_STATES - 1;
  __u8 flags = walk->flags;
  walk->flags = flags & ~(SAMPLER_TRUNCATED | SAMPLER_UNREADABLE);
  walk->interpreter = 0; /* of the main one, and of the only one */
  if (work->several) {
    __u64 interpreter = read_word(work->states[index] + at->thread_interpreter);
    walk->interpreter = (__u32)read_word(interpreter + at->interpreter_id);
  }
  walk->placed = work->state_count > 1;
  walk->end = SAMPLER_MOST_FRAMES;
  if (walk->placed) {
    walk->end = walk->count + SAMPLER_MOST_PLACED / work->state_count - 2; /* two words follow */
  }
  walk->full = 0;
  walk->first_place = 0;
  walk->frame = read_word(work->states[index] + at->current_frame);
  walk->may_be_empty = 1;
  if (at->frame_in_cframe) { /* 3.12: struct _PyCFrame {current_frame, previous} */
    /* The _PyCFrame that belongs to no evaluator is in the thread state itself. */
    walk->cframe = walk->frame;
    walk->may_be_empty = walk->frame - work->states[index] < kMostThreadState;
    walk->behind_cframe = read_word(read_word(walk->frame + at->previous_cframe));
    walk->frame = read_word(walk->frame);
  }
  walk->published = walk->frame;
  walk->count_before = walk->count;
  walk->flags_before = walk->flags;
  walk->what = kTryPublished;
  bpf_loop(kTries, step_try, walker, 0);
  work->places[index] = walk->first_place;
  if (walk->placed) {
    bool cut = (walk->flags & (SAMPLER_TRUNCATED | SAMPLER_UNREADABLE)) != 0;
    put_word(work, SAMPLER_STATE_END, cut);
  }
  walk->flags |= flags;
  return 0;
}

#endif
