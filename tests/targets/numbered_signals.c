// Prints the number that each queued SIGRTMIN+3 carries, one per line. Its second thread has called vfork() and is in state
// D: it cannot be stopped until the child named in line 1, "ready CHILD", is killed.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void print_number(int signal, siginfo_t* info, void* context) {
  char line[16];
  (void)signal;
  (void)context;
  const int length = snprintf(line, sizeof line, "%d\n", info->si_value.sival_int);
  (void)!write(1, line, (size_t)length);
}

static void* stay_in_vfork(void* nothing) {
  (void)nothing;
  if (vfork() == 0) {
    char line[32];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int length = snprintf(line, sizeof line, "ready %d\n", (int)getpid());
    (void)!write(1, line, (size_t)length);
    while (1) {
      pause();
    }
  }
  while (1) {
    pause();
  }
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = print_number;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGRTMIN + 3, &action, NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, stay_in_vfork, NULL) != 0) {
    return 1;
  }
  while (1) {
    pause();
  }
}
