/* What the program has to know of the processor. */
#ifndef PYINJECT_BPF_SAMPLER_X86_64_BPF_H
#define PYINJECT_BPF_SAMPLER_X86_64_BPF_H

struct thread_struct {
  unsigned long fsbase;
} __attribute__((preserve_access_index));

struct pt_regs___kernel {
  unsigned long di;
  unsigned long si;
  unsigned long orig_ax;
} __attribute__((preserve_access_index));

#define SYS_FUTEX 202

/* linux/futex.h: the operations that wait, and what may be set beside them. */
enum {
  kFutexWait = 0,
  kFutexLockPi = 6,
  kFutexWaitBitset = 9,
  kFutexLockPi2 = 13,
  kFutexFlags = 128 | 256,
};

/* pthread_self(), which PyThreadState.thread_id is. */
#define THREAD_POINTER(task) ((task)->thread.fsbase)

#define STACK_POINTER(ctx) ((ctx)->regs.rsp)

#define IN_KERNEL(ctx) (((ctx)->regs.cs & 3) == 0)

/* Those that can hold a pointer. Of the kernel, where it was sampled there: then none is found. */
#define SAMPLER_REGISTERS 15
#define TAKE_REGISTERS(into, ctx)  \
  do {                             \
    (into)[0] = (ctx)->regs.rax;   \
    (into)[1] = (ctx)->regs.rbx;   \
    (into)[2] = (ctx)->regs.rcx;   \
    (into)[3] = (ctx)->regs.rdx;   \
    (into)[4] = (ctx)->regs.rsi;   \
    (into)[5] = (ctx)->regs.rdi;   \
    (into)[6] = (ctx)->regs.rbp;   \
    (into)[7] = (ctx)->regs.r8;    \
    (into)[8] = (ctx)->regs.r9;    \
    (into)[9] = (ctx)->regs.r10;   \
    (into)[10] = (ctx)->regs.r11;  \
    (into)[11] = (ctx)->regs.r12;  \
    (into)[12] = (ctx)->regs.r13;  \
    (into)[13] = (ctx)->regs.r14;  \
    (into)[14] = (ctx)->regs.r15;  \
  } while (0)

/* Of the system call that the thread is in: the futex that it waits for, not one that it wakes; else
 * 0. */
static __always_inline __u64 awaited_futex(struct task_struct *task) {
  struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
  if (BPF_CORE_READ(regs, orig_ax) != SYS_FUTEX) {
    return 0;
  }
  __u32 operation = (__u32)BPF_CORE_READ(regs, si) & ~kFutexFlags;
  bool waits = operation == kFutexWait || operation == kFutexWaitBitset ||
               operation == kFutexLockPi || operation == kFutexLockPi2;
  return waits ? BPF_CORE_READ(regs, di) : 0;
}

#endif
