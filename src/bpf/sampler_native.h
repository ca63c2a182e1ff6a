/* Shared by the BPF program (sampler_native.bpf.h) and its loader (native_tables.hpp): where the
 * program finds the unwind tables of a process. C, since both include it. */
#ifndef PYINJECT_BPF_SAMPLER_NATIVE_H
#define PYINJECT_BPF_SAMPLER_NATIVE_H

#include <linux/types.h>

/* NOLINTBEGIN(readability-identifier-naming): C, with the names that C has */

enum native_limits {
  NATIVE_SEGMENT_WORDS = 1 << 20, /* of 4 bytes */
  NATIVE_MOST_SEGMENTS = 64,
  NATIVE_MAPPING_WORDS = 8, /* size of a struct native_mapping */
  NATIVE_MOST_FRAMES = 2048,
};

enum native_mapping_kind {
  NATIVE_TABLE = 0,      /* code with an unwind table */
  NATIVE_NO_TABLE = 1,   /* other executable memory: its functions may have frame pointers */
  NATIVE_TRAMPOLINE = 2, /* CPython's trampolines, one beside the other */
  NATIVE_CLOSURE = 3,    /* libffi's trampolines, one beside the other */
};

/* A part of an executable mapping. Those of a process are beside each other in a segment, in
 * ascending order. */
struct native_mapping {
  __u64 begin;
  __u64 end;
  /* Place of BEGIN in the table; NATIVE_TRAMPOLINE, NATIVE_CLOSURE: bytes from one trampoline to
   * the next. */
  __u32 place;
  __u32 chunks; /* NATIVE_TRAMPOLINE: bytes of a trampoline */
  __u32 word;   /* of the chunk index; rows follow. NATIVE_TRAMPOLINE: where it enters its frame */
  __u16 segment;
  __u8 kind;
  __u8 keeps_fp; /* NATIVE_TRAMPOLINE: it saves the frame pointer */
};

struct native_process {
  __u32 epoch; /* changes with the mappings */
  __u32 segment;
  __u32 first; /* number of its first mapping in the segment */
  __u32 count;
};

/* Why a native stack ends. */
enum native_end {
  NATIVE_NOT_READ = 0, /* the process has no tables */
  NATIVE_ROOT,
  NATIVE_LIMIT,      /* NATIVE_MOST_FRAMES */
  NATIVE_UNMAPPED,   /* the last address is in no known mapping */
  NATIVE_NO_RULE,    /* no unwind information, and no frame pointer */
  NATIVE_UNREADABLE, /* the stack is not in memory */
  NATIVE_BROKEN,     /* the stack does not grow towards its root */
};

/* NOLINTEND(readability-identifier-naming) */

#endif
