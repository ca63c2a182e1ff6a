/* A row of an unwind table in the form that a BPF program can apply. C, since the program includes
 * it (bpf/sampler_native.bpf.h); compiled by elf/unwind_table.hpp. */
#ifndef PYINJECT_ELF_UNWIND_RULE_H
#define PYINJECT_ELF_UNWIND_RULE_H

#include <linux/types.h>

/* NOLINTBEGIN(readability-identifier-naming): C, with the names that C has */

enum unwind_rule_kind {
  UNWIND_NONE = 0,      /* no information */
  UNWIND_END = 1,       /* first function of a thread: it has no caller */
  UNWIND_CFA = 2,       /* CFA = base + offset */
  UNWIND_CFA_AT = 3,    /* CFA = *(base + offset) + addend */
  UNWIND_PLT = 4,       /* CFA = stack pointer + 8, and 8 more from byte ADDEND of an entry on */
  UNWIND_SIGNAL = 5,    /* the frame of a signal handler, whose caller was interrupted */
  UNWIND_RA_IN_REG = 6, /* CFA = base + offset; return address in register ADDEND */
};

enum unwind_rule_flags {
  UNWIND_SAVED_BY_FP = 1, /* SAVED counts from the frame pointer + 8, not from the CFA */
};

enum unwind_limits {
  UNWIND_CHUNK_BITS = 8, /* a chunk of code: 256 bytes */
  UNWIND_MOST_RULES = 32768,
  UNWIND_SAVED = 6,
};

/* Unless KIND says otherwise, the return address is the word below the canonical frame address
 * (CFA). Registers have DWARF numbers. */
struct unwind_rule {
  __s32 offset;
  __s16 addend;
  __u8 base;
  __u8 kind;
  __u8 flags;
  __u8 unused;
  /* Where the caller's callee-saved registers are (x86-64: rbp, rbx, r12 to r15), in words below
   * the CFA; 0: still in the register. */
  __u8 saved[UNWIND_SAVED];
};

/* NOLINTEND(readability-identifier-naming) */

#endif
