/* Traces process PID, as debuggers do, prints `ready` and waits for the end of its input. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 2 || ptrace(PTRACE_SEIZE, (pid_t)strtol(argv[1], NULL, 10), NULL, NULL) != 0) {
    perror("tracer");
    return 1;
  }
  puts("ready");
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}
