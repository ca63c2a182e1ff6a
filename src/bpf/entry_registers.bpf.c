/* Runs in the kernel once for each thread of the machine while the loader reads from its iterator,
 * and tells the registers with which the threads of one process have entered the kernel. Those of a
 * thread that is blocked there are all in its struct pt_regs (PUSH_AND_CLEAR_REGS in
 * arch/x86/entry/entry_64.S). */
#include "entry_registers.h"

#include "sampler_kernel.bpf.h"
#include "sampler_pids.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 wanted_pid = 0; /* set by the loader */

struct seq_file;
struct bpf_iter_meta {
  struct seq_file* seq;
} __attribute__((preserve_access_index));
struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
} __attribute__((preserve_access_index));

SEC("iter/task")
int each_thread(struct bpf_iter__task* at) {
  struct task_struct* task = at->task;
  if (!task || number_of(BPF_CORE_READ(task, group_leader)) != wanted_pid) {
    return 0;
  }
  struct entry_registers record = {.tid = number_of(task), .thread_pointer = THREAD_POINTER(task)};
  record.values[ENTRY_REGISTERS - 1] = take_native_entry_registers(record.values, task);
  bpf_seq_write(at->meta->seq, &record, sizeof record);
  return 0;
}
