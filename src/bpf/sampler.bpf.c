/* Runs in the kernel at each sample of perf's events, or at each hit of a tracepoint, kprobe or
 * uprobe, and reads the Python stack of the current thread. It runs in that thread's context, so
 * that the stack does not change meanwhile. It writes only to its own maps (sampler_work.bpf.h). */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "sampler_frames.bpf.h"
#include "sampler_gil.bpf.h"
#include "sampler_greenlets.bpf.h"
#include "sampler_kernel.bpf.h"
#include "sampler_names.bpf.h"
#include "sampler_native.bpf.h"
#include "sampler_records.h"
#include "sampler_states.bpf.h"
#include "sampler_tasks.bpf.h"
#include "sampler_work.bpf.h"

char LICENSE[] SEC("license") = "GPL";

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

/* CTX: null at a tracepoint. In the kernel, the registers are those of the entry to it. */
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
  if (!work || (!process && !bpf_map_lookup_elem(&natives, &pid))) {
    return 1;
  }
  struct sampled_stack *stack = &work->stack;
  stack->head.kind = SAMPLER_STACK;
  stack->head.pid = pid;
  stack->head.tid = thread->tid;
  stack->head.time = time;
  stack->head.task = 0;
  stack->head.gil = SAMPLER_GIL_UNKNOWN;
  stack->head.does = SAMPLER_DOES_UNKNOWN;
  struct walk *walk = &work->walk;
  walk->flags = flags;
  walk->count = 0;
  walk->last_code = 0;
  walk->placed = 0;
  work->named = 0;
  work->restocked = 0;
  bool in_kernel = !ctx || IN_KERNEL(ctx);
  stack->head.address = 0;
  if (ctx && !in_kernel) {
    stack->head.address = PROGRAM_COUNTER(ctx);
    TAKE_REGISTERS(work->registers, ctx);
    work->stack_pointer = STACK_POINTER(ctx);
  } else {
    work->stack_pointer = take_user_registers(work->registers, task);
  }
  __u8 without = process ? SAMPLER_NO_STATE : SAMPLER_NO_STATE | SAMPLER_NO_PROCESS;
  if (process) {
    count(SAMPLER_COUNT_SAMPLES);
    work->at = *process;
    if (!(task->flags & (kIsIoWorker | kIsUserWorker))) {
      without = find_states(work, thread, THREAD_POINTER(task));
    }
  }
  if (without != 0) {
    walk->flags |= without;
    if (without & SAMPLER_NO_STATE) {
      stack->head.gil = SAMPLER_GIL_NONE;
    }
  } else {
    struct walker walker = {.work = work};
    bpf_loop(SAMPLER_MOST_STATES, step_walk, &walker, 0);
    if (with_gil) {
      stack->head.gil = gil_of(work, thread, task, in_kernel);
    }
    if (with_tasks) {
      stack->head.task = task_of(work);
    }
    if (work->state_count > 1) {
      stack->head.does = SAMPLER_DOES_UNKNOWN; /* of the first state, perhaps not the innermost */
    }
    if (collects(work)) {
      stack->head.does |= SAMPLER_COLLECTS;
    }
    if (walk->count != 0 && work->at.greenlet_module != 0 && !walk->placed &&
        !(walk->flags & (SAMPLER_TRUNCATED | SAMPLER_UNREADABLE | SAMPLER_UNGROUPED))) {
      read_parents(work, THREAD_POINTER(task));
    }
  }
  stack->head.count = walk->count;
  stack->head.flags = walk->flags | (walk->placed ? SAMPLER_PLACED : 0);
  if (walk->flags & SAMPLER_TRUNCATED) {
    count(SAMPLER_COUNT_TRUNCATED);
  }
  if (walk->flags & SAMPLER_UNREADABLE) {
    count(SAMPLER_COUNT_UNREADABLE);
  }
  if (walk->flags & SAMPLER_BY_CLOCK) {
    count(SAMPLER_COUNT_BY_CLOCK);
  }
  if (walk->flags & SAMPLER_TRACED) {
    count(SAMPLER_COUNT_TRACED);
  }
  if (stack->head.gil == SAMPLER_GIL_HELD) {
    count(SAMPLER_COUNT_GIL_HELD);
  } else if (stack->head.gil == SAMPLER_GIL_WAITED_FOR) {
    count(SAMPLER_COUNT_GIL_WAITED_FOR);
  }
  read_native(work, ctx, task, pid, walk->count);
  __u64 size = __builtin_offsetof(struct sampled_stack, frames) +
               ((__u64)walk->count + stack->head.native_count) * sizeof(struct sampled_frame);
  KEEP(size);
  if (size > sizeof *stack || bpf_ringbuf_output(&records, stack, size, wake()) != 0) {
    count(SAMPLER_COUNT_LOST);
  }
  return 1;
}

/* Weak: kernels without it load the other program. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;

/* Linux 6.3 and later fill in the sample before they run the program: the sample's own time is the
 * key that matches the record to it. */
SEC("perf_event")
int at_sample(struct bpf_perf_event_data *ctx) {
  struct bpf_perf_event_data_kern *kernel = bpf_cast_to_kern_ctx(ctx);
  struct perf_sample_data *data = BPF_CORE_READ(kernel, data);
  /* One call: the verifier would check two copies of the program. */
  bool has_time = (BPF_CORE_READ(data, sample_flags) & PERF_SAMPLE_TIME) != 0;
  return sample(ctx, has_time ? BPF_CORE_READ(data, time) : bpf_ktime_get_ns(),
                has_time ? 0 : SAMPLER_BY_CLOCK);
}

/* Older kernels: the clock of -k mono, read within some microseconds of the sample's time. */
SEC("perf_event")
int at_sample_by_clock(struct bpf_perf_event_data *ctx) {
  return sample(ctx, bpf_ktime_get_ns(), SAMPLER_BY_CLOCK);
}

/* Tracepoints, kprobes and uprobes. The kernel runs such a program at each hit on the machine, not
 * only at those that perf's event samples, and before it makes the samples. A return value of 0
 * would take away the samples of everybody's perf (trace_call_bpf() in kernel/trace/bpf_trace.c). */
static __always_inline int trace(void) {
  struct task_struct *task = bpf_get_current_task_btf();
  __u32 pid = own_pid_namespace == INITIAL_NAMESPACE
                  ? (__u32)task->tgid
                  : number_of(BPF_CORE_READ(task, group_leader));
  if (bpf_map_lookup_elem(&processes, &pid) || bpf_map_lookup_elem(&natives, &pid)) {
    sample(0, bpf_ktime_get_ns(), SAMPLER_TRACED);
  }
  return 1;
}

SEC("tracepoint")
int at_tracepoint(void *ctx) {
  return trace();
}

SEC("kprobe")
int at_probe(void *ctx) {
  return trace();
}

static __always_inline void put_moment(struct sampled_moment record) {
  if (bpf_ringbuf_output(&records, &record, sizeof record, wake()) != 0) {
    count(SAMPLER_COUNT_LOST);
  }
}

/* Loaded only if requested: it runs at each wakeup on the machine, in the context of the waker: in
 * its system call, or in an interrupt of whatever runs. try_to_wake_up() in kernel/sched/core.c has
 * interrupts off, so that no sample is taken meanwhile, except by an NMI. The Python stack of a
 * thread that wakes another one of its process says who let it go on: of a lock, who released it.
 * An interrupt of such a system call that wakes another thread is taken for the waker, too. */
SEC("tp_btf/sched_waking")
int BPF_PROG(at_waking, struct task_struct *task) {
  struct task_struct *waker = bpf_get_current_task_btf();
  __u32 pid = number_of(BPF_CORE_READ(task, group_leader));
  if (pid == 0 || task == waker || !bpf_map_lookup_elem(&processes, &pid)) {
    return 0;
  }
  struct sampled_moment moment = {
      .kind = SAMPLER_WAKE, .pid = pid, .tid = number_of(task), .time = bpf_ktime_get_ns()};
  if (task->tgid == waker->tgid && wakes_futex(waker)) {
    moment.waker = number_of(waker);
    sample(0, moment.time, SAMPLER_TRACED);
  }
  put_moment(moment);
  return 0;
}

/* Loaded only if requested: it runs at each system call on the machine. */
SEC("tp_btf/sys_enter")
int BPF_PROG(at_poll, struct pt_regs *regs, long number) {
  if (!IS_POLL(number)) {
    return 0;
  }
  struct task_struct *task = bpf_get_current_task_btf();
  __u32 pid = number_of(BPF_CORE_READ(task, group_leader));
  if (pid != 0 && bpf_map_lookup_elem(&processes, &pid)) {
    put_moment((struct sampled_moment){
        .kind = SAMPLER_POLL, .pid = pid, .tid = number_of(task), .time = bpf_ktime_get_ns()});
  }
  return 0;
}

/* Processes --------------------------------------------------------------------------------- */

/* In a forked child everything has the same address as in its parent. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(at_fork, struct task_struct *parent, struct task_struct *child) {
  __u32 pid = number_of(BPF_CORE_READ(parent, group_leader));
  struct sampled_process *process = bpf_map_lookup_elem(&processes, &pid);
  if (process || bpf_map_lookup_elem(&natives, &pid)) {
    count(SAMPLER_COUNT_BIRTHS);
  }
  if (parent->tgid == child->tgid) {
    return 0;
  }
  __u32 child_pid = number_of(child);
  bpf_map_delete_elem(&stocks, &child_pid);
  __u8 *member = bpf_map_lookup_elem(&members, &pid);
  if (member) {
    __u8 one = 1;
    bpf_map_update_elem(&members, &child_pid, &one, BPF_ANY);
  }
  if (process) {
    struct sampled_process copy = *process;
    bpf_map_update_elem(&processes, &child_pid, &copy, BPF_ANY);
  }
  struct native_process *native = bpf_map_lookup_elem(&natives, &pid);
  if (native) {
    struct native_process copy = *native;
    bpf_map_update_elem(&natives, &child_pid, &copy, BPF_ANY);
  }
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(at_exec, struct task_struct *task) {
  __u32 pid = number_of(BPF_CORE_READ(task, group_leader));
  bpf_map_delete_elem(&processes, &pid);
  bpf_map_delete_elem(&natives, &pid);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(at_exit, struct task_struct *task) {
  if (BPF_CORE_READ(task, signal, live.counter) == 0) {
    __u32 pid = number_of(BPF_CORE_READ(task, group_leader));
    bpf_map_delete_elem(&processes, &pid);
    bpf_map_delete_elem(&natives, &pid);
    bpf_map_delete_elem(&members, &pid);
  }
  return 0;
}
