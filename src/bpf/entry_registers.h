/* Shared by the BPF program (entry_registers.bpf.c) and its loader. C, since both include it. */
#ifndef PYINJECT_BPF_ENTRY_REGISTERS_H
#define PYINJECT_BPF_ENTRY_REGISTERS_H

#include <linux/types.h>

/* NOLINTBEGIN(readability-identifier-naming): C, with the names that C has */

enum { ENTRY_REGISTERS = 17 }; /* by DWARF number; the last one is the program counter */

/* Of a thread, when it entered the kernel the last time. */
struct entry_registers {
  __u32 tid; /* in the loader's pid namespace */
  __u32 unused;
  __u64 thread_pointer;
  __u64 values[ENTRY_REGISTERS];
};

/* NOLINTEND(readability-identifier-naming) */

#endif
