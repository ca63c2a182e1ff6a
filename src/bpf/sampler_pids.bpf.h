/* The numbers of threads and processes in the loader's pid namespace. */
#ifndef PYINJECT_BPF_SAMPLER_PIDS_BPF_H
#define PYINJECT_BPF_SAMPLER_PIDS_BPF_H

#include "sampler_kernel.bpf.h"

const volatile __u32 own_pid_namespace = 0; /* its inode number, set by the loader */

/* Inode number of the initial pid namespace (PROC_PID_INIT_INO in include/linux/proc_ns.h). */
#define INITIAL_NAMESPACE 0xeffffffcU

/* TASK's pid in the loader's pid namespace; 0: not visible there. */
static __always_inline __u32 number_of(struct task_struct* task) {
  if (own_pid_namespace == INITIAL_NAMESPACE) {
    return (__u32)BPF_CORE_READ(task, pid);
  }
  struct pid* pid = BPF_CORE_READ(task, thread_pid);
  if (!pid) {
    return 0;
  }
  __u32 level = BPF_CORE_READ(pid, level);
  struct upid* numbers = (void*)__builtin_preserve_access_index(&pid->numbers);
  for (__u32 i = 0; i < 33; ++i) { /* MAX_PID_NS_LEVEL */
    if (i > level) {
      return 0;
    }
    struct upid* number = (void*)numbers + i * bpf_core_type_size(struct upid);
    if (BPF_CORE_READ(number, ns, ns.inum) == own_pid_namespace) {
      return BPF_CORE_READ(number, nr);
    }
  }
  return 0;
}

#endif
