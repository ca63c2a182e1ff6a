#include "cli/run.hpp"

#include <csignal>

#if PYINJECT_STATIC
#include <nss.h>
#endif

int main(int argc, char** argv) {
#if PYINJECT_STATIC
  // Modules of NSS belong to the machine's C library: a program with another one cannot load them.
  ::__nss_configure_lookup("passwd", "files");
#endif
  // A file that exceeds `ulimit -f` is an error as one on a full disk is, also while targets are
  // on.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  return pyinject::cli::run(argc, argv);
}
