/* Python embedded in a C program of any name, with a libpython that is loaded at run time:
 * embed LIBPYTHON MODE PROGRAM
 * MODE main: Python in the first thread; thread: in a second one; later: prints `loaded` and waits
 * for a line before it initializes Python; around: the first thread initializes Python, runs PROGRAM
 * and then no Python any more. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void (*initialize)(int);
static int (*run)(const char*);
static void* (*release)(void);

static void* python(void* program) {
  initialize(0);
  run(program);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    return 2;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void**)&initialize = dlsym(library, "Py_InitializeEx");
  *(void**)&run = dlsym(library, "PyRun_SimpleString");
  *(void**)&release = dlsym(library, "PyEval_SaveThread");
  if (initialize == NULL || run == NULL || release == NULL) {
    return 1;
  }
  if (strcmp(argv[2], "thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, python, argv[3]) != 0) {
      return 1;
    }
    pthread_join(thread, NULL);
    return 0;
  }
  if (strcmp(argv[2], "later") == 0) {
    char line[16];
    puts("loaded");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) {
      return 0;
    }
  }
  python(argv[3]);
  if (strcmp(argv[2], "around") == 0) {
    release();
    getchar();
  }
  return 0;
}
