// without ptrace|event-programs COMMAND...
// ptrace: SIGSYS kills COMMAND if it or one of its children traces another process or writes to the
// memory of one by a system call. event-programs: no perf event takes a BPF program, as on a kernel
// that does not know the program's type for it.
#include <errno.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static struct sock_filter without_ptrace[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_filter without_event_programs[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PERF_EVENT_IOC_SET_BPF, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: without ptrace|event-programs COMMAND...\n");
    return 125;
  }
  struct sock_fprog filter = {.len = COUNT(without_ptrace), .filter = without_ptrace};
  if (strcmp(argv[1], "event-programs") == 0) {
    filter =
        (struct sock_fprog){.len = COUNT(without_event_programs), .filter = without_event_programs};
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) {
    perror("without");
    return 125;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
