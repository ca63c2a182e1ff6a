/* The parts of the program that depend on the processor. */
#ifndef PYINJECT_BPF_SAMPLER_X86_64_BPF_H
#define PYINJECT_BPF_SAMPLER_X86_64_BPF_H

struct thread_struct {
  unsigned long fsbase;
} __attribute__((preserve_access_index));

struct pt_regs___kernel {
  unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
  unsigned long orig_ax;
  unsigned long ip;
  unsigned long sp;
} __attribute__((preserve_access_index));

#define SYS_FUTEX 202

/* linux/futex.h: operations, and the flags that may be set with them. */
enum {
  kFutexWait = 0,
  kFutexWake = 1,
  kFutexLockPi = 6,
  kFutexWaitBitset = 9,
  kFutexWakeBitset = 10,
  kFutexLockPi2 = 13,
  kFutexFlags = 128 | 256,
};

/* pthread_self(), which is the value of PyThreadState.thread_id. */
#define THREAD_POINTER(task) ((task)->thread.fsbase)

/* The thread-local variables of the module with number MODULE; 0: the thread has not used them. glibc:
 * the pointer to the thread's vector is behind the one that the thread pointer points to
 * (sysdeps/x86_64/nptl/tls.h), and has two words for each module, after two words with the number of
 * modules for which it has room (sysdeps/generic/dl-dtv.h). */
static __always_inline __u64 thread_locals(__u64 thread_pointer, __u32 module) {
  __u64 vector = read_word(thread_pointer + sizeof(__u64));
  __u64 room = read_word(vector - 2 * sizeof(__u64));
  __u64 block = module <= room ? read_word(vector + 2 * sizeof(__u64) * module) : 0;
  return block == ~0ULL ? 0 : block; /* TLS_DTV_UNALLOCATED */
}

#define STACK_POINTER(ctx) ((ctx)->regs.rsp)
#define PROGRAM_COUNTER(ctx) ((ctx)->regs.rip)

#define IN_KERNEL(ctx) (((ctx)->regs.cs & 3) == 0)

/* The registers that can hold a pointer. */
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

/* Stores the registers that the thread had when it entered the kernel, and returns its stack
 * pointer. struct pt_regs begins with them (arch/x86/include/asm/ptrace.h). */
static __always_inline __u64 take_user_registers(__u64 *into, struct task_struct *task) {
  struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
  bpf_probe_read_kernel(into, SAMPLER_REGISTERS * sizeof *into, regs);
  return BPF_CORE_READ(regs, sp);
}

/* The native stack ------------------------------------------------------------------------------ */

/* DWARF numbers, System V ABI x86-64 figure 3.36. */
enum {
  kRax,
  kRdx,
  kRcx,
  kRbx,
  kRsi,
  kRdi,
  kRbp,
  kRsp,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
};
#define NATIVE_FP kRbp
#define NATIVE_SP kRsp

/* By the index in unwind_rule.saved. */
static const __u8 NATIVE_SAVED[] = {kRbp, kRbx, kR12, kR13, kR14, kR15};

#define TAKE_BY_DWARF_NUMBER(into, GET, r8, r9, r10, r11, r12, r13, r14, r15, ax, dx, cx, bx, si, \
                             di, bp, sp)                                                          \
  do {                                                                                            \
    (into)[kRax] = GET(ax);                                                                       \
    (into)[kRdx] = GET(dx);                                                                       \
    (into)[kRcx] = GET(cx);                                                                       \
    (into)[kRbx] = GET(bx);                                                                       \
    (into)[kRsi] = GET(si);                                                                       \
    (into)[kRdi] = GET(di);                                                                       \
    (into)[kRbp] = GET(bp);                                                                       \
    (into)[kRsp] = GET(sp);                                                                       \
    (into)[kR8] = GET(r8);                                                                        \
    (into)[kR9] = GET(r9);                                                                        \
    (into)[kR10] = GET(r10);                                                                      \
    (into)[kR11] = GET(r11);                                                                      \
    (into)[kR12] = GET(r12);                                                                      \
    (into)[kR13] = GET(r13);                                                                      \
    (into)[kR14] = GET(r14);                                                                      \
    (into)[kR15] = GET(r15);                                                                      \
  } while (0)

/* All three store the registers by DWARF number and return the program counter. */
static __always_inline __u64 take_native_registers(__u64 *into, struct bpf_perf_event_data *ctx) {
#define OF_SAMPLE(name) ctx->regs.name
  TAKE_BY_DWARF_NUMBER(into, OF_SAMPLE, r8, r9, r10, r11, r12, r13, r14, r15, rax, rdx, rcx, rbx,
                       rsi, rdi, rbp, rsp);
#undef OF_SAMPLE
  return ctx->regs.rip;
}

/* Those that the thread had when it entered the kernel. */
static __always_inline __u64 take_native_entry_registers(__u64 *into, struct task_struct *task) {
  struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
#define OF_ENTRY(name) BPF_CORE_READ(regs, name)
  TAKE_BY_DWARF_NUMBER(into, OF_ENTRY, r8, r9, r10, r11, r12, r13, r14, r15, ax, dx, cx, bx, si, di,
                       bp, sp);
#undef OF_ENTRY
  return BPF_CORE_READ(regs, ip);
}

/* struct rt_sigframe (arch/x86/include/asm/sigframe.h): the stack pointer of the function that
 * calls rt_sigreturn(2) points to its ucontext, of which uc_mcontext is 40 bytes behind the start.
 * It begins with r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp and rip
 * (arch/x86/include/uapi/asm/sigcontext.h). */
enum { NATIVE_SIGNAL_AT = 40, NATIVE_SIGNAL_WORDS = 17 };
static __always_inline __u64 take_signal_registers(__u64 *into, const __u64 *from) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    into[kR8 + i] = from[i];
  }
  into[kRdi] = from[8];
  into[kRsi] = from[9];
  into[kRbp] = from[10];
  into[kRbx] = from[11];
  into[kRdx] = from[12];
  into[kRax] = from[13];
  into[kRcx] = from[14];
  into[kRsp] = from[15];
  return from[16];
}

/* An entry of a PLT pushes a word after its first ADDEND bytes. */
static __always_inline __u64 plt_cfa(__u64 stack_pointer, __u64 address, __s16 addend) {
  return stack_pointer + 8 + ((address & 15) >= (__u64)addend ? 8 : 0);
}

/* CPython's trampoline (Objects/asm_trampoline.S) moves the stack pointer by a word, or pushes
 * %rbp; libffi's (trampoline_code_table in src/x86/unix64.S) moves it by two words at its start. */
static __always_inline void trampoline_rule(const struct native_mapping *mapping, __u64 address,
                                            struct unwind_rule *rule) {
  __u32 each = mapping->place;
  __u32 at = each == 0 ? 0 : (__u32)(address - mapping->begin) % each;
  bool entered = at >= mapping->word && at + 1 < mapping->chunks;
  rule->kind = UNWIND_CFA;
  rule->base = kRsp;
  if (mapping->kind == NATIVE_CLOSURE) {
    rule->offset = entered ? 24 : 8;
    return;
  }
  rule->offset = entered ? 16 : 8;
  rule->saved[0] = entered && mapping->keeps_fp ? 2 : 0;
}

/* The same for trampolines in memory that the loader has not scanned yet: a child process makes new
 * ones after each fork. PC: a return address. Returns whether the code there is the end of a
 * trampoline: call *%rcx, and then either pop %rbp; ret or add $8,%rsp; ret. */
static __always_inline bool new_trampoline_rule(__u64 pc, struct unwind_rule *rule) {
  __u64 code = 0;
  if (bpf_probe_read_user(&code, sizeof code, (void *)(pc - 2)) != 0) {
    return false;
  }
  bool keeps_fp = (__u32)code == 0xc35dd1ffU;
  if (!keeps_fp && (code & 0xffffffffffffffULL) != 0xc308c48348d1ffULL) {
    return false;
  }
  rule->kind = UNWIND_CFA;
  rule->base = kRsp;
  rule->offset = 16;
  rule->saved[0] = keeps_fp ? 2 : 0;
  return true;
}

/* The futex for which the thread waits in its current system call; 0: none. A futex that the thread
 * wakes does not count. */
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

/* Whether the thread wakes others that wait for a futex, in its current system call. */
static __always_inline bool wakes_futex(struct task_struct *task) {
  struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
  if (BPF_CORE_READ(regs, orig_ax) != SYS_FUTEX) {
    return false;
  }
  __u32 operation = (__u32)BPF_CORE_READ(regs, si) & ~kFutexFlags;
  return operation == kFutexWake || operation == kFutexWakeBitset;
}

/* epoll_wait, epoll_pwait, epoll_pwait2 */
#define IS_POLL(number) ((number) == 232 || (number) == 281 || (number) == 441)

#endif
