#include "cli/run.hpp"

#if PYINJECT_STATIC
#include <nss.h>
#endif

int main(int argc, char** argv) {
#if PYINJECT_STATIC
  // Modules of NSS belong to the machine's C library: a program with another one cannot load them.
  ::__nss_configure_lookup("passwd", "files");
#endif
  return pyinject::cli::run(argc, argv);
}
