/* Runs in the kernel at each sample of perf's events: reads the Python stack of the thread that was
 * hit, in whose context it runs, so that nothing moves meanwhile. Nothing is written anywhere but
 * into the maps below. What the offsets mean: docs/cpython-notes.md "Frames". */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "sampler_records.h"

/* As much of the kernel's types as is used; the loader relocates them by the running kernel's BTF. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
  unsigned int inum;
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid {
  int nr;
  struct pid_namespace *ns;
};
struct pid {
  unsigned int level;
  struct upid numbers[1];
};
typedef struct {
  int counter;
} atomic_t;
struct signal_struct {
  atomic_t live;
};
struct task_struct;
struct perf_sample_data {
  __u64 sample_flags;
  __u64 time;
};
struct bpf_perf_event_data_kern {
  struct perf_sample_data *data;
};
#pragma clang attribute pop

#include "sampler_x86_64.bpf.h"

struct task_struct {
  int pid;
  int tgid;
  unsigned int flags;
  __u64 start_time;
  struct task_struct *group_leader;
  struct pid *thread_pid;
  struct signal_struct *signal;
  struct thread_struct thread;
} __attribute__((preserve_access_index));

char LICENSE[] SEC("license") = "GPL";

/* include/linux/sched.h: threads of the kernel's that have the memory, and the thread pointer, of the
 * one for which they work (io_uring, vhost). */
enum { kIsIoWorker = 0x10, kIsUserWorker = 0x4000 };

/* The compiler drops a bound that it can prove, and the verifier cannot. */
#define KEEP(value) asm volatile("" : "+r"(value))

/* Set by the loader, whose C++ knows no _Bool. */
const volatile __u32 own_pid_namespace = 0; /* its inode number */
const volatile __u8 with_gil = 0;
const volatile __u8 with_tasks = 0;
const volatile __u64 wake_at = 0; /* bytes in the ring that are worth a wake-up */

/* Preallocated, as all: before Linux 6.1 programs of perf's events take no other. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32); /* pid, as the loader's pid namespace has it */
  __type(value, struct sampled_process);
} processes SEC(".maps");

/* Those that are recorded when perf records the whole system, and what they have forked. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, __u8);
} members SEC(".maps");

__u8 only_members = 0;

struct known_thread {
  __u64 start_time; /* of the task: a thread number is given away again */
  __u64 state;      /* its PyThreadState; 0: not known */
  __u32 pid;
  __u32 tid;
  __u32 in_vain; /* why the last search found none: of enum sampler_flags; 0: it did */
  __u32 unused;
};

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32); /* the kernel's own number of the thread */
  __type(value, struct known_thread);
} threads SEC(".maps");

struct object_key {
  __u64 address;
  __u64 pid;
};

struct known_object {
  __u64 fingerprint;
  __u32 number;
  __u32 unused;
};

/* Code objects and tasks, by their addresses, which are given away again: hence the fingerprint. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct object_key);
  __type(value, struct known_object);
} objects SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 8 << 20);
} records SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, SAMPLER_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} counters SEC(".maps");

/* What an evaluator has on the stack, its entry frame too (3.12, 3.13), takes some hundred bytes. */
enum { kEvaluatorsStack = 4096, kMostThreadState = 8192 };
enum { kOwnedByGenerator = 1, kFirstEntryOwner = 3 }; /* pycore_frame.h: enum _frameowner */

/* Where the walk along the frames is. */
struct walk {
  __u64 frame;
  __u64 published; /* with which it was begun */
  __u64 last_code;
  __u64 behind_entry;  /* the previous one of the first entry frame */
  __u64 behind_cframe; /* 3.12: the innermost frame of the evaluator before this one */
  __u32 count;
  __u32 count_before; /* with which this thread state was begun */
  __u32 last_number;
  __u8 flags_before;
  __u8 may_be_empty;
  __u8 what; /* is tried: see below */
  __u8 flags;
  __u8 steps;       /* 0, 1, or more */
  __u8 first_entry; /* the first frame is an entry frame */
  __u8 last_entry;
  __u8 last_generator;
  __u8 stale; /* what is published is an earlier one's */
};

/* One sample's work. The kernel runs no two such programs at a time on one processor. */
struct work {
  struct sampled_process at;
  __u64 states[SAMPLER_MOST_STATES];
  __u32 state_count;
  struct walk walk;
  __u64 search_after; /* of threads whose last search was in vain */
  __u64 registers[16];
  __u64 stack_pointer;
  __u8 frame[128];
  __u8 code[256];
  struct sampled_stack stack;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct work);
} works SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct sampled_name);
} names SEC(".maps");

__u32 last_number = 0;

static __always_inline void count(__u32 which) {
  __u64 *counter = bpf_map_lookup_elem(&counters, &which);
  if (counter) {
    ++*counter;
  }
}

static __always_inline __u64 read_word(__u64 address) {
  __u64 word = 0;
  return bpf_probe_read_user(&word, sizeof word, (void *)address) == 0 ? word : 0;
}

static __always_inline __u64 word_of(const __u8 *bytes, __u32 offset, __u32 mask) {
  offset &= mask;
  KEEP(offset);
  offset &= mask;
  return *(const __u64 *)(bytes + offset);
}

static __always_inline __u64 wake(void) {
  return bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) > wake_at ? BPF_RB_FORCE_WAKEUP
                                                                  : BPF_RB_NO_WAKEUP;
}

/* The number of TASK in the loader's pid namespace; 0: it is not seen from there. */
static __always_inline __u32 number_of(struct task_struct *task) {
  struct pid *pid = BPF_CORE_READ(task, thread_pid);
  if (!pid) {
    return 0;
  }
  __u32 level = BPF_CORE_READ(pid, level);
  struct upid *numbers = (void *)__builtin_preserve_access_index(&pid->numbers);
  for (__u32 i = 0; i < 33; ++i) { /* MAX_PID_NS_LEVEL */
    if (i > level) {
      return 0;
    }
    struct upid *number = (void *)numbers + i * bpf_core_type_size(struct upid);
    if (BPF_CORE_READ(number, ns, ns.inum) == own_pid_namespace) {
      return BPF_CORE_READ(number, nr);
    }
  }
  return 0;
}

/* Names ------------------------------------------------------------------------------------- */

struct text {
  __u32 bytes;
  __u8 width;
  __u8 cut;
};

/* The characters of the str at ADDRESS, to NAME's bytes from AT on. */
static __always_inline struct text put_text(struct sampled_name *name, __u32 at, __u32 most,
                                            const struct sampled_process *process, __u64 address) {
  struct text text = {0, 0, 0};
  __u64 length = read_word(address + process->text_length);
  __u32 state = (__u32)read_word(address + process->text_state);
  __u32 width = (state >> 2) & 7;
  __u32 ascii = (state >> 6) & 1;
  if (!(state & 0x20) || (width != 1 && width != 2 && width != 4)) { /* not compact */
    return text;
  }
  __u64 size = length > most ? most + 4 : length * width;
  if (size > most) {
    size = most & ~3U;
    text.cut = 1;
  }
  KEEP(size);
  if (size > most) {
    return text;
  }
  __u64 from = address + process->ascii_data + (ascii ? 0 : 16);
  if (bpf_probe_read_user(name->bytes + at, size, (void *)from) == 0) {
    text.bytes = (__u32)size;
    text.width = (__u8)width;
  }
  return text;
}

static __always_inline long put_record(struct sampled_name *name, __u32 bytes) {
  __u64 size = __builtin_offsetof(struct sampled_name, bytes) + bytes;
  KEEP(size);
  if (size > sizeof *name) {
    return -1;
  }
  return bpf_ringbuf_output(&records, name, size, wake());
}

static __always_inline struct sampled_name *new_name(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&names, &zero);
}

/* False: there was no room for it. What is not in memory is read by the loader (cold_names.hpp). */
static __noinline bool name_code(struct work *work, const struct object_key *key, __u64 fingerprint,
                                 __u32 number) {
  struct sampled_name *name = new_name();
  if (!work || !name || !key) {
    return false;
  }
  const struct sampled_process *at = &work->at;
  __u8 missing = 0;
  name->head.kind = SAMPLER_CODE;
  name->head.pid = work->stack.head.pid;
  name->head.number = number;
  name->head.byte_code = at->byte_code;
  name->head.address = key->address;
  name->head.fingerprint = fingerprint;
  __u64 first_line = word_of(work->code, at->first_line & ~7U, 0xf8);
  name->head.first_line = (__s32)(at->first_line & 4 ? first_line >> 32 : first_line);
  struct text text =
      put_text(name, 0, SAMPLER_MOST_QUALNAME, at, word_of(work->code, at->qualified_name, 0xf8));
  missing |= text.width == 0 ? SAMPLER_MISSING_NAME : 0;
  name->head.name_bytes = text.bytes;
  name->head.name_width = text.width;
  name->head.name_cut = text.cut;
  __u32 used = text.bytes;
  KEEP(used);
  if (used > SAMPLER_MOST_QUALNAME) {
    return false;
  }
  text = put_text(name, used, SAMPLER_MOST_FILE, at, word_of(work->code, at->file_name, 0xf8));
  missing |= text.width == 0 ? SAMPLER_MISSING_FILE : 0;
  name->head.file_bytes = text.bytes;
  name->head.file_width = text.width;
  used += text.bytes;
  KEEP(used);
  if (used > SAMPLER_MOST_QUALNAME + SAMPLER_MOST_FILE) {
    return false;
  }
  __u64 table = word_of(work->code, at->line_table, 0xf8);
  __u64 size = 0;
  bool lines =
      bpf_probe_read_user(&size, sizeof size, (void *)(table + at->item_count)) == 0;
  size = size > SAMPLER_MOST_LINES ? SAMPLER_MOST_LINES : size;
  KEEP(size);
  if (size > SAMPLER_MOST_LINES) {
    return false;
  }
  if (bpf_probe_read_user(name->bytes + used, size, (void *)(table + at->bytes_data)) != 0) {
    size = 0;
    lines = false;
  }
  name->head.line_bytes = (__u32)size;
  name->head.missing = missing | (lines ? 0 : SAMPLER_MISSING_LINES);
  used += (__u32)size;
  return put_record(name, used) == 0;
}

/* The number of what is at ADDRESS and looks like FINGERPRINT; 0: not known yet. */
static __always_inline __u32 known_number(const struct object_key *key, __u64 fingerprint) {
  struct known_object *known = bpf_map_lookup_elem(&objects, key);
  return known && known->fingerprint == fingerprint ? known->number : 0;
}

static __always_inline __u32 new_number(void) {
  return __sync_fetch_and_add(&last_number, 1) + 1;
}

static __always_inline void remember(const struct object_key *key, __u64 fingerprint,
                                     __u32 number) {
  struct known_object object = {.fingerprint = fingerprint, .number = number};
  bpf_map_update_elem(&objects, key, &object, BPF_ANY);
}

/* Of the code object at ADDRESS, whose constant part has pointers, lines and co_version in it, a
 * number that CPython gives once. False: there is none. */
static __always_inline bool identify_code(struct work *work, __u64 address, __u32 *number) {
  const struct sampled_process *at = &work->at;
  if (bpf_probe_read_user(work->code, SAMPLER_CODE_BYTES, (void *)address) != 0 ||
      word_of(work->code, at->type, 0xf8) != at->code_type) {
    return false;
  }
  __u64 fingerprint = 0;
  for (__u32 i = 0; i < SAMPLER_CODE_WORDS; ++i) {
    fingerprint = sampler_mix(fingerprint, word_of(work->code, (at->first_line & ~7U) + 8 * i, 0xf8));
  }
  struct object_key key = {.address = address, .pid = work->stack.head.pid};
  *number = known_number(&key, fingerprint);
  if (*number == 0) {
    *number = new_number();
    if (name_code(work, &key, fingerprint, *number)) {
      remember(&key, fingerprint, *number);
    } else {
      *number = 0;
      count(SAMPLER_COUNT_LOST_NAMES);
    }
  }
  return true;
}

/* Frames ------------------------------------------------------------------------------------ */

/* What loops hand to their steps has to be on the stack, where the verifier follows each value: the
 * less is there the sooner it has seen all. */
struct walker {
  struct work *work;
};

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
  __u32 index_of_last = walk->count - 1;
  __u64 code = word_of(work->frame, at->executable, 0x78) & ~at->executable_tags;
  bool entry = work->frame[owner] >= kFirstEntryOwner;
  if (!entry && address - work->stack_pointer < kEvaluatorsStack) {
    /* One whose owner the evaluator has not stored yet: it has None for code. */
    entry = read_word(code + at->type) != at->code_type;
  }
  if (walk->steps == 0) {
    walk->steps = 1;
    walk->first_entry = entry;
  }
  if (entry && walk->steps == 1) {
    walk->steps = 2;
    walk->behind_entry = walk->frame;
  }
  walk->last_entry = entry;
  walk->last_generator = work->frame[owner] == kOwnedByGenerator;
  if (entry) {
    KEEP(index_of_last);
    if (index_of_last < SAMPLER_MOST_FRAMES) {
      work->stack.frames[index_of_last].where |= SAMPLER_OUTERMOST;
    }
    return 0;
  }
  __u32 place = walk->count;
  KEEP(place);
  if (place >= SAMPLER_MOST_FRAMES) {
    walk->flags |= SAMPLER_TRUNCATED;
    return 1;
  }
  __u64 instruction = word_of(work->frame, at->instruction, 0x78);
  __u32 number = 0;
  if (code == walk->last_code) { /* it calls itself */
    number = walk->last_number;
  } else if (!identify_code(work, code, &number)) {
    walk->flags |= SAMPLER_UNREADABLE;
    return 1;
  }
  walk->last_code = code;
  walk->last_number = number;
  work->stack.frames[place].code = number;
  work->stack.frames[place].where = (__u32)(instruction - code) & SAMPLER_OFFSET;
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
  __u64 frame = address == 0 || (address & 7) != 0 ? 0 : read_word(address);
  if (frame != 0 && is_linked_frame(work, frame)) {
    search->found = frame;
    return 1;
  }
  return 0;
}

/* For some instructions the innermost frame is not linked to the one before: a generator's that
 * yields; one whose evaluator begins, which in 3.12 puts its own _PyCFrame in front first and fills
 * it in later. What is stored next is in a register, and so is the _PyCFrame before. */
static __always_inline __u64 frame_in_registers(struct work *work, bool by_cframe) {
  struct register_search search = {.work = work};
  bpf_loop(SAMPLER_REGISTERS, by_cframe ? (void *)step_register_of_cframe : (void *)step_register,
           &search, 0);
  return search.found;
}

/* What is to be tried after the walk from what the thread state says; at last that again, with which
 * the innermost frames are there. */
enum {
  kTryPublished,
  kTryRestOfIt,
  kTryCframe,
  kTryFrame,
  kTryCframeBehind,
  kTryPublishedAgain,
  kTries = 5, /* one of the first two is left out, or more */
};

/* The frame to go on with, or to begin anew with; 0: none. */
static __always_inline __u64 next_try(struct work *work) {
  struct walk *walk = &work->walk;
  if (walk->what == kTryRestOfIt) {
    return frame_in_registers(work, false);
  }
  walk->flags = walk->flags_before;
  walk->count = walk->count_before;
  return walk->what == kTryCframe         ? frame_in_registers(work, true)
         : walk->what == kTryFrame        ? frame_in_registers(work, false)
         : walk->what == kTryCframeBehind ? walk->behind_cframe
         : walk->stale                    ? 0
                                          : walk->published;
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
  walk->first_entry = 0;
  walk->last_entry = 1; /* nothing is complete */
  walk->last_generator = 0;
  bpf_loop(3 * SAMPLER_MOST_FRAMES, step_frame, walker, 0);
  bool readable = walk->flags == walk->flags_before;
  /* What is in a _PyCFrame that is not filled in is often the entry frame of an earlier one. */
  bool stale = walk->what == kTryPublished && at->frame_in_cframe && walk->first_entry &&
               walk->behind_entry != walk->behind_cframe;
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
  walk->frame = read_word(work->states[index] + at->current_frame);
  walk->may_be_empty = 1;
  if (at->frame_in_cframe) { /* 3.12: struct _PyCFrame {current_frame, previous} */
    /* That of no evaluator is in the thread state itself. */
    walk->may_be_empty = walk->frame - work->states[index] < kMostThreadState;
    walk->behind_cframe = read_word(read_word(walk->frame + 8));
    walk->frame = read_word(walk->frame);
  }
  walk->published = walk->frame;
  walk->count_before = walk->count;
  walk->flags_before = walk->flags;
  walk->what = kTryPublished;
  bpf_loop(kTries, step_try, walker, 0);
  return 0;
}

/* Thread states ----------------------------------------------------------------------------- */

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

/* The GIL ----------------------------------------------------------------------------------- */

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

/* asyncio ----------------------------------------------------------------------------------- */

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

/* Of all that is told of a task. A new one often has the address of an earlier one, and its name that
 * of the earlier one's, but hardly ever the same characters. */
static __always_inline __u64 task_fingerprint(const struct sampled_name *name) {
  __u64 bytes = name->head.name_bytes;
  struct text_hash hash = {
      .name = name,
      .fingerprint = sampler_mix((__u32)name->head.first_line, bytes << 8 | name->head.name_width)};
  bpf_loop((bytes + sizeof(__u64) - 1) / sizeof(__u64), step_hash, &hash, 0);
  return hash.fingerprint;
}

/* The task that the thread runs in any of its interpreters; 0: none. */
static __always_inline __u64 running_task(const struct work *work) {
  const struct sampled_process *at = &work->at;
  __u64 task = 0;
  for (__u32 i = 0; i < SAMPLER_MOST_STATES && i < work->state_count && task == 0; ++i) {
    task = read_word(work->states[i] + at->running_task);
  }
  return task;
}

/* The number of its name. */
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
  } else { /* an int, until somebody asks for the name: Modules/_asynciomodule.c */
    name->head.first_line = (__s32)read_word(text + 24); /* its lowest 30 bits */
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

/* The sample -------------------------------------------------------------------------------- */

static __always_inline struct known_thread *thread_of(struct task_struct *task) {
  __u32 key = (__u32)task->pid;
  struct known_thread *known = bpf_map_lookup_elem(&threads, &key);
  if (known && known->start_time == task->start_time) {
    return known;
  }
  struct known_thread thread = {.start_time = task->start_time,
                                .pid = number_of(BPF_CORE_READ(task, group_leader)),
                                .tid = number_of(task)};
  bpf_map_update_elem(&threads, &key, &thread, BPF_ANY);
  return bpf_map_lookup_elem(&threads, &key);
}

static __always_inline int sample(struct bpf_perf_event_data *ctx, __u64 time, __u8 flags) {
  struct task_struct *task = bpf_get_current_task_btf();
  struct known_thread *thread = thread_of(task);
  if (!thread) {
    return !only_members;
  }
  __u32 pid = thread->pid;
  if (only_members && !bpf_map_lookup_elem(&members, &pid)) {
    return 0; /* perf gets no sample */
  }
  struct sampled_process *process = bpf_map_lookup_elem(&processes, &pid);
  __u32 zero = 0;
  struct work *work = bpf_map_lookup_elem(&works, &zero);
  if (!process || !work) {
    return 1;
  }
  count(SAMPLER_COUNT_SAMPLES);
  work->at = *process;
  struct sampled_stack *stack = &work->stack;
  stack->head.kind = SAMPLER_STACK;
  stack->head.pid = pid;
  stack->head.tid = thread->tid;
  stack->head.time = time;
  stack->head.task = 0;
  stack->head.gil = SAMPLER_GIL_UNKNOWN;
  struct walk *walk = &work->walk;
  walk->flags = flags;
  walk->count = 0;
  walk->last_code = 0;
  __u8 without = task->flags & (kIsIoWorker | kIsUserWorker)
                     ? SAMPLER_NO_STATE
                     : find_states(work, thread, THREAD_POINTER(task));
  TAKE_REGISTERS(work->registers, ctx);
  work->stack_pointer = STACK_POINTER(ctx);
  if (without != 0) {
    walk->flags |= without;
    if (without & SAMPLER_NO_STATE) {
      stack->head.gil = SAMPLER_GIL_NONE;
      count(SAMPLER_COUNT_NO_STATE);
    }
  } else {
    struct walker walker = {.work = work};
    bpf_loop(SAMPLER_MOST_STATES, step_walk, &walker, 0);
    if (with_gil) {
      stack->head.gil = gil_of(work, task, IN_KERNEL(ctx));
    }
    if (with_tasks) {
      stack->head.task = task_of(work);
    }
    if (walk->count == 0) {
      count(SAMPLER_COUNT_NO_FRAMES);
    }
  }
  stack->head.count = walk->count;
  stack->head.flags = walk->flags;
  if (walk->flags & SAMPLER_TRUNCATED) {
    count(SAMPLER_COUNT_TRUNCATED);
  }
  if (walk->flags & SAMPLER_UNREADABLE) {
    count(SAMPLER_COUNT_UNREADABLE);
  }
  if (walk->flags & SAMPLER_BY_CLOCK) {
    count(SAMPLER_COUNT_BY_CLOCK);
  }
  if (stack->head.gil == SAMPLER_GIL_HELD) {
    count(SAMPLER_COUNT_GIL_HELD);
  } else if (stack->head.gil == SAMPLER_GIL_WAITED_FOR) {
    count(SAMPLER_COUNT_GIL_WAITED_FOR);
  }
  __u64 size = __builtin_offsetof(struct sampled_stack, frames) +
               (__u64)walk->count * sizeof(struct sampled_frame);
  KEEP(size);
  if (size > sizeof *stack || bpf_ringbuf_output(&records, stack, size, wake()) != 0) {
    count(SAMPLER_COUNT_LOST);
  }
  return 1;
}

/* Weak: kernels without it load the other program. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;

/* Linux 6.3 and later fill in the sample before they run the program: its own time is the key by
 * which the record is found again. */
SEC("perf_event")
int at_sample(struct bpf_perf_event_data *ctx) {
  struct bpf_perf_event_data_kern *kernel = bpf_cast_to_kern_ctx(ctx);
  struct perf_sample_data *data = BPF_CORE_READ(kernel, data);
  if (BPF_CORE_READ(data, sample_flags) & PERF_SAMPLE_TIME) {
    return sample(ctx, BPF_CORE_READ(data, time), 0);
  }
  return sample(ctx, bpf_ktime_get_ns(), SAMPLER_BY_CLOCK);
}

/* Older ones: the clock of -k mono, read some microseconds beside the sample's time. */
SEC("perf_event")
int at_sample_by_clock(struct bpf_perf_event_data *ctx) {
  return sample(ctx, bpf_ktime_get_ns(), SAMPLER_BY_CLOCK);
}

/* Processes --------------------------------------------------------------------------------- */

/* A forked child has everything where its parent has it. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(at_fork, struct task_struct *parent, struct task_struct *child) {
  if (parent->tgid == child->tgid) {
    return 0;
  }
  __u32 pid = number_of(BPF_CORE_READ(parent, group_leader));
  struct sampled_process *process = bpf_map_lookup_elem(&processes, &pid);
  __u32 child_pid = number_of(child);
  __u8 *member = bpf_map_lookup_elem(&members, &pid);
  if (member) {
    __u8 one = 1;
    bpf_map_update_elem(&members, &child_pid, &one, BPF_ANY);
  }
  if (process) {
    struct sampled_process copy = *process;
    bpf_map_update_elem(&processes, &child_pid, &copy, BPF_ANY);
  }
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(at_exec, struct task_struct *task) {
  __u32 pid = number_of(BPF_CORE_READ(task, group_leader));
  bpf_map_delete_elem(&processes, &pid);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(at_exit, struct task_struct *task) {
  if (BPF_CORE_READ(task, signal, live.counter) == 0) {
    __u32 pid = number_of(BPF_CORE_READ(task, group_leader));
    bpf_map_delete_elem(&processes, &pid);
    bpf_map_delete_elem(&members, &pid);
  }
  return 0;
}
