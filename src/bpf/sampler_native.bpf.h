/* Unwinds the native stack of the current thread by tables compiled from .eh_frame
 * (elf/unwind_table.hpp), which the loader places in maps (native_tables.hpp). */
#ifndef PYINJECT_BPF_SAMPLER_NATIVE_BPF_H
#define PYINJECT_BPF_SAMPLER_NATIVE_BPF_H

#include "../elf/unwind_rule.h"
#include "sampler_native.h"
#include "sampler_work.bpf.h"

struct native_words {
  __u32 at[NATIVE_SEGMENT_WORDS];
};

/* value_size instead of __type: libbpf 1.1 cannot determine the size of a type that is only
 * declared. */
struct native_segment {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(struct native_words));
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, NATIVE_MOST_SEGMENTS);
  __type(key, __u32);
  __array(values, struct native_segment);
} segments SEC(".maps");

struct unwind_rules {
  struct unwind_rule at[UNWIND_MOST_RULES];
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, struct unwind_rules);
} rules SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32); /* pid in the loader's pid namespace */
  __type(value, struct native_process);
} natives SEC(".maps");

/* The rules of the latest program counters. */
struct native_cached {
  __u64 pc;
  __u32 epoch;
  __u32 unused;
  struct unwind_rule rule;
};

enum { kCacheBits = 10 };
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1 << kCacheBits);
  __type(key, __u32);
  __type(value, struct native_cached);
} native_cache SEC(".maps");

enum {
  kWindow = 8,   /* words below the CFA in which nearly all functions save their registers */
  kBlock = 1024, /* bytes of the stack read at once: a read costs as much as some dozen steps */
};

struct native_walk {
  __u64 regs[16]; /* by DWARF number */
  __u64 pc;
  __u64 window[kWindow];
  __u64 signal[NATIVE_SIGNAL_WORDS];
  __u64 block[kBlock / 8];
  __u64 block_at; /* address of BLOCK; 0: empty */
  struct native_mapping mapping;
  struct native_process process;
  __u32 begin; /* index of the first program counter in the record */
  __u32 count;
  __u8 interrupted; /* PC is that of an interrupted function, not a return address */
  __u8 end;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct native_walk);
} native_walks SEC(".maps");

struct native_walker {
  struct native_walk *walk;
  struct work *work;
};

static __always_inline struct native_words *segment_of(__u32 number) {
  __u32 zero = 0;
  void *segment = bpf_map_lookup_elem(&segments, &number);
  return segment ? bpf_map_lookup_elem(segment, &zero) : 0;
}

static __always_inline struct native_mapping *mapping_in(struct native_words *words, __u32 number) {
  __u32 word = number * NATIVE_MAPPING_WORDS & (NATIVE_SEGMENT_WORDS - NATIVE_MAPPING_WORDS);
  return (struct native_mapping *)&words->at[word];
}

/* The first mapping whose end is above ADDRESS, by a search without branches: the verifier would
 * follow each of their combinations. */
static __always_inline bool find_mapping(struct native_walk *walk, __u64 address) {
  if (walk->mapping.begin <= address && address < walk->mapping.end) {
    return true;
  }
  struct native_words *words = segment_of(walk->process.segment);
  if (!words) {
    return false;
  }
  __u32 first = walk->process.first;
  __u32 left = walk->process.count;
  for (int i = 0; i < 18; ++i) {
    if (left == 0) {
      break;
    }
    __u32 half = left >> 1;
    __u64 end = mapping_in(words, first + half)->end;
    __u32 below = (__u32)((end - address - 1) >> 63); /* end <= address */
    KEEP(below);
    first += (half + 1) * below;
    left = half - (below & ~left & 1);
  }
  if (first >= walk->process.first + walk->process.count) {
    return false;
  }
  struct native_mapping *found = mapping_in(words, first);
  if (address < found->begin || address >= found->end) {
    return false;
  }
  walk->mapping = *found;
  return true;
}

static __always_inline bool find_rule(struct native_walk *walk, __u64 address,
                                      struct unwind_rule *rule) {
  struct native_words *words = segment_of(walk->mapping.segment);
  __u32 zero = 0;
  struct unwind_rules *all = bpf_map_lookup_elem(&rules, &zero);
  if (!words || !all) {
    return false;
  }
  __u32 place = (__u32)(address - walk->mapping.begin) + walk->mapping.place;
  __u32 chunk = place >> UNWIND_CHUNK_BITS;
  if (chunk >= walk->mapping.chunks) {
    return false;
  }
  __u32 word = walk->mapping.word + chunk;
  __u32 first = words->at[word & (NATIVE_SEGMENT_WORDS - 1)];
  __u32 left = words->at[(word + 1) & (NATIVE_SEGMENT_WORDS - 1)] - first;
  __u32 offset = place & ((1U << UNWIND_CHUNK_BITS) - 1);
  for (int i = 0; i < UNWIND_CHUNK_BITS + 2; ++i) { /* a chunk has at most 512 rows */
    if (left == 0) {
      break;
    }
    __u32 half = left >> 1;
    __u32 row = words->at[(first + half) & (NATIVE_SEGMENT_WORDS - 1)];
    __u32 below = ((row >> 16) - offset - 1) >> 31; /* the row's offset <= OFFSET */
    KEEP(below);
    first += (half + 1) * below;
    left = half - (below & ~left & 1);
  }
  __u32 row = words->at[(first - 1) & (NATIVE_SEGMENT_WORDS - 1)];
  *rule = all->at[row & (UNWIND_MOST_RULES - 1)];
  return true;
}

static __always_inline long end_native(struct native_walk *walk, __u8 why) {
  walk->end = why;
  return 1;
}

/* Reads the words below TOP into the window. */
static __always_inline bool read_window(struct native_walk *walk, __u64 top) {
  __u64 from = top - sizeof walk->window;
  __u64 offset = from - walk->block_at;
  if (walk->block_at == 0 || offset > kBlock - sizeof walk->window) {
    offset = 0;
    if (bpf_probe_read_user(walk->block, kBlock, (void *)from) == 0) {
      walk->block_at = from;
    } else { /* near the end of the stack */
      walk->block_at = 0;
      if (bpf_probe_read_user(walk->block, sizeof walk->window, (void *)from) != 0) {
        return false;
      }
    }
  }
  offset >>= 3;
  if (offset > kBlock / 8 - kWindow) {
    return false;
  }
#pragma unroll
  for (int i = 0; i < kWindow; ++i) {
    walk->window[i] = walk->block[(offset + i) & (kBlock / 8 - 1)];
  }
  return true;
}

/* The registers that RULE finds in memory below TOP. What is below the stack pointer has been
 * popped back into its register already. */
static __always_inline void restore(struct native_walk *walk, const struct unwind_rule *rule,
                                    __u64 top, __u64 stack_pointer) {
#pragma unroll
  for (int i = 0; i < UNWIND_SAVED; ++i) {
    __u32 below = rule->saved[i];
    __u64 at = top - 8 * (__u64)below;
    if (below != 0 && at >= stack_pointer) {
      __u32 word = kWindow - below;
      KEEP(word);
      walk->regs[NATIVE_SAVED[i]] =
          below <= kWindow ? walk->window[word & (kWindow - 1)] : read_word(at);
    }
  }
}

static __always_inline long step_frame_pointer(struct native_walk *walk) {
  __u64 frame = walk->regs[NATIVE_FP];
  if ((frame & 7) != 0 || frame < walk->regs[NATIVE_SP] ||
      bpf_probe_read_user(walk->window, 16, (void *)frame) != 0) {
    return end_native(walk, NATIVE_NO_RULE);
  }
  __u64 caller = walk->window[1];
  if (!find_mapping(walk, caller - 1)) {
    return end_native(walk, NATIVE_NO_RULE);
  }
  walk->regs[NATIVE_FP] = walk->window[0];
  walk->regs[NATIVE_SP] = frame + 16;
  walk->pc = caller;
  return 0;
}

static long step_native(__u32 index, struct native_walker *walker) {
  struct native_walk *walk = walker->walk;
  struct work *work = walker->work;
  if (walk->pc == 0) {
    return end_native(walk, index == 0 ? NATIVE_BROKEN : NATIVE_ROOT);
  }
  __u64 address = walk->interrupted ? walk->pc : walk->pc - 1;
  __u32 place = walk->begin + walk->count;
  KEEP(place);
  if (walk->count >= NATIVE_MOST_FRAMES || place >= SAMPLER_MOST_WORDS) {
    return end_native(walk, NATIVE_LIMIT);
  }
  work->stack.words[place] = address;
  ++walk->count;
  __u64 stack_pointer = walk->regs[NATIVE_SP];
  struct unwind_rule rule = {};
  __u32 slot = (__u32)(((address ^ walk->process.epoch) * 0x9e3779b97f4a7c15ULL) >>
                       (64 - kCacheBits));
  struct native_cached *cached = bpf_map_lookup_elem(&native_cache, &slot);
  if (cached && cached->pc == address && cached->epoch == walk->process.epoch) {
    rule = cached->rule;
  } else {
    bool mapped = find_mapping(walk, address);
    bool generated = !mapped || walk->mapping.kind == NATIVE_NO_TABLE;
    if (generated && !walk->interrupted && new_trampoline_rule(walk->pc, &rule)) {
      cached = 0; /* the code may change */
    } else if (!mapped) {
      return end_native(walk, NATIVE_UNMAPPED);
    } else if (walk->mapping.kind == NATIVE_TABLE) {
      find_rule(walk, address, &rule);
    } else if (!generated) {
      trampoline_rule(&walk->mapping, address, &rule);
    }
    if (cached) {
      cached->pc = address;
      cached->epoch = walk->process.epoch;
      cached->rule = rule;
    }
  }
  walk->interrupted = 0;
  __u64 cfa = 0;
  switch (rule.kind) {
    case UNWIND_END:
      return end_native(walk, NATIVE_ROOT);
    case UNWIND_CFA:
    case UNWIND_RA_IN_REG:
      cfa = walk->regs[rule.base & 15] + (__s64)rule.offset;
      break;
    case UNWIND_CFA_AT:
      if (bpf_probe_read_user(&cfa, sizeof cfa,
                              (void *)(walk->regs[rule.base & 15] + (__s64)rule.offset)) != 0) {
        return end_native(walk, NATIVE_UNREADABLE);
      }
      cfa += (__s64)rule.addend;
      break;
    case UNWIND_PLT:
      cfa = plt_cfa(stack_pointer, address, rule.addend);
      break;
    case UNWIND_SIGNAL:
      if (bpf_probe_read_user(walk->signal, sizeof walk->signal,
                              (void *)(stack_pointer + NATIVE_SIGNAL_AT)) != 0) {
        return end_native(walk, NATIVE_UNREADABLE);
      }
      walk->pc = take_signal_registers(walk->regs, walk->signal);
      walk->interrupted = 1;
      return 0;
    default:
      return step_frame_pointer(walk);
  }
  if (rule.kind == UNWIND_RA_IN_REG) { /* vfork(2) of glibc, which has popped it */
    walk->pc = walk->regs[rule.addend & 15];
    walk->regs[NATIVE_SP] = cfa;
    return cfa < stack_pointer ? end_native(walk, NATIVE_BROKEN) : 0;
  }
  if (cfa <= stack_pointer) {
    return end_native(walk, NATIVE_BROKEN);
  }
  if (!read_window(walk, cfa)) {
    return end_native(walk, NATIVE_UNREADABLE);
  }
  walk->pc = walk->window[kWindow - 1];
  __u64 top = cfa;
  if (rule.flags & UNWIND_SAVED_BY_FP) {
    top = walk->regs[NATIVE_FP] + 8;
    if (!read_window(walk, top)) {
      return end_native(walk, NATIVE_UNREADABLE);
    }
  }
  restore(walk, &rule, top, stack_pointer);
  walk->regs[NATIVE_SP] = cfa;
  return 0;
}

/* Appends the program counters of TASK, the current thread, to the record, behind BEGIN words. CTX:
 * null at a tracepoint or probe. */
static __always_inline void read_native(struct work *work, struct bpf_perf_event_data *ctx,
                                        struct task_struct *task, __u32 pid, __u32 begin) {
  struct sampled_stack_head *head = &work->stack.head;
  head->native_count = 0;
  head->native_end = NATIVE_NOT_READ;
  struct native_process *process = with_native ? bpf_map_lookup_elem(&natives, &pid) : 0;
  __u32 zero = 0;
  struct native_walk *walk = bpf_map_lookup_elem(&native_walks, &zero);
  if (!process || !walk || (task->flags & (kIsKernelThread | kIsIoWorker | kIsUserWorker))) {
    return;
  }
  walk->process = *process;
  walk->mapping.begin = walk->mapping.end = 0;
  walk->block_at = 0;
  walk->begin = begin;
  walk->count = 0;
  walk->interrupted = 1;
  walk->end = NATIVE_LIMIT;
  if (ctx && !IN_KERNEL(ctx)) {
    walk->pc = take_native_registers(walk->regs, ctx);
  } else {
    walk->pc = take_native_entry_registers(walk->regs, task);
  }
  struct native_walker walker = {.walk = walk, .work = work};
  bpf_loop(NATIVE_MOST_FRAMES + 1, step_native, &walker, 0);
  head->native_count = walk->count;
  head->native_end = walk->end;
}

#endif
