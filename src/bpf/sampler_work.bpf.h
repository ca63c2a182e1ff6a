/* The program's settings, its state between samples, and the helpers that all its parts use. */
#ifndef PYINJECT_BPF_SAMPLER_WORK_BPF_H
#define PYINJECT_BPF_SAMPLER_WORK_BPF_H

#include "sampler_kernel.bpf.h"
#include "sampler_pids.bpf.h"
#include "sampler_records.h"

/* Prevents the compiler from dropping a bound that it can prove, but the verifier cannot. */
#define KEEP(value) asm volatile("" : "+r"(value))

/* A global function: the verifier checks it once, for all arguments, instead of at each call in each
 * state of the caller, which takes nearly all the time that the program needs to load. Pointers may
 * be null then. */
#define CHECKED_ONCE __noinline

/* Set by the loader, whose C++ has no _Bool. */
const volatile __u8 with_gil = 0;
const volatile __u8 with_tasks = 0;
const volatile __u8 with_native = 0;
const volatile __u64 wake_at = 0; /* bytes in the ring that justify a wakeup */
const volatile struct sampled_python python = {0};

/* Preallocated, like all maps here: before Linux 6.1, programs of perf events accept no others. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32); /* pid in the loader's pid namespace */
  __type(value, struct sampled_process);
} processes SEC(".maps");

/* The processes to record when perf records the whole system, and their forked children. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, __u8);
} members SEC(".maps");

__u8 only_members = 0;

enum { SAMPLER_KNOWN_STATES = 8 };

struct known_thread {
  __u64 start_time; /* of the task: thread ids are reused */
  /* What the last search found: its thread states, of all interpreters. */
  __u64 states[SAMPLER_KNOWN_STATES];
  __u64 made; /* of the lists that were searched (made_states()); 0: STATES may be incomplete */
  __u32 state_count;
  __u32 in_vain; /* why it found none (enum sampler_flags); 0: it found one */
  __u32 pid;
  __u32 tid;
};

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32); /* the kernel's own thread id */
  __type(value, struct known_thread);
} threads SEC(".maps");

/* Interpreters do the same in the same order: in two that exist one after the other, different code
 * objects may have the same address and constant part. */
struct object_key {
  __u64 address;
  __u32 pid;
  __u32 interpreter; /* the lower half of its id, which a process uses once */
};

struct known_object {
  __u64 fingerprint;
  __u32 number;
  __u32 unused;
};

/* Code objects and tasks by their addresses, which are reused: hence the fingerprint. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct object_key);
  __type(value, struct known_object);
} objects SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32); /* pid */
  __type(value, struct sampled_stock);
} stocks SEC(".maps");

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

/* An evaluator's stack, including its entry frame (3.12, 3.13), takes some hundred bytes.
 * kMostLeftStack: below the stack pointer is what functions that have returned have left. */
enum { kEvaluatorsStack = 4096, kMostThreadState = 8192, kMostLeftStack = 65536 };

/* The state of the walk along the frames. */
struct walk {
  __u64 frame;
  __u64 published; /* the first frame of the walk */
  __u64 last_code;
  __u64 behind_entry;  /* the frame before the first entry frame */
  __u64 cframe;        /* 3.12: the innermost _PyCFrame */
  __u64 behind_cframe; /* 3.12: the innermost frame of the previous evaluator */
  __u32 count;
  __u32 count_before; /* count at the start of this thread state */
  __u32 last_number;
  __u8 flags_before;
  __u8 may_be_empty;
  __u8 what; /* the current attempt, kTryPublished and so on */
  __u8 flags;
  __u8 steps;       /* 0, 1, or more */
  __u8 last_entry;
  __u8 last_generator;
  __u8 stale; /* the published frame is that of an earlier _PyCFrame */
  __u8 placed; /* the thread runs Python in several interpreters */
  __u8 full;   /* no room for the frames up to the next entry frame */
  __u32 end;   /* of the room for the frames of this thread state */
  __u32 interpreter; /* its interpreter's id */
  __u64 first_place; /* of its innermost entry frame */
};

/* One sample's work. The kernel never runs two such programs at the same time on one processor. */
struct work {
  struct sampled_process at;
  __u64 states[SAMPLER_MOST_STATES]; /* in which the thread runs Python, or an idle one */
  __u64 places[SAMPLER_MOST_STATES]; /* of their innermost entry frames */
  __u64 idle;
  __u32 state_count;
  __u32 several; /* the process has several interpreters */
  struct walk walk;
  __u32 named;        /* code objects named in this sample */
  __u32 restocked;    /* the stock was refilled in this sample */
  __u64 search_after; /* time of the next search for threads whose last one was in vain */
  __u64 registers[16];
  __u64 stack_pointer;
  __u8 frame[128];
  __u8 code[256];
  __u64 greenlet[32]; /* of the implementation of a greenlet */
  __u32 parent_steps; /* not on the stack, where the verifier would check each value */
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
  __u64* counter = bpf_map_lookup_elem(&counters, &which);
  if (counter) {
    ++*counter;
  }
}

static __always_inline __u64 word_of(const __u8* bytes, __u32 offset, __u32 mask) {
  offset &= mask;
  KEEP(offset);
  offset &= mask;
  return *(const __u64*)(bytes + offset);
}

static __always_inline __u64 wake(void) {
  return bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) > wake_at ? BPF_RB_FORCE_WAKEUP
                                                                  : BPF_RB_NO_WAKEUP;
}

#endif
