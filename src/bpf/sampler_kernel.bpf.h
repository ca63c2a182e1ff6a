/* The parts of the kernel that the program uses. */
#ifndef PYINJECT_BPF_SAMPLER_KERNEL_BPF_H
#define PYINJECT_BPF_SAMPLER_KERNEL_BPF_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Only the used members of kernel types; the loader relocates them by the running kernel's BTF. */
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

/* 0: unreadable. The helper then clears WORD (bpf_probe_read_user_common() in
 * kernel/trace/bpf_trace.c). A branch would double the paths that the verifier checks. */
static __always_inline __u64 read_word(__u64 address) {
  __u64 word = 0;
  bpf_probe_read_user(&word, sizeof word, (void*)address);
  return word;
}

#include "../elf/unwind_rule.h"
#include "sampler_native.h"
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

/* include/linux/sched.h: kernel threads that have the memory and the thread pointer of the thread
 * for which they work (io_uring, vhost). */
enum { kIsIoWorker = 0x10, kIsUserWorker = 0x4000, kIsKernelThread = 0x200000 };

#endif
