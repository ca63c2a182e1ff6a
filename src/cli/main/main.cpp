#include "cli/run.hpp"

int main(int argc, char** argv) { return pyinject::cli::run(argc, argv); }
