#include "report/demangled.hpp"

#include <array>
#include <csetjmp>
#include <cstddef>
#include <string_view>

// libiberty/cp-demangle.c as libstdc++ has it, in its archive: abi::__cxa_demangle() without the
// growing buffer. It passes the name in pieces, allocates on the stack only, and returns 0 for a
// name.
extern "C" int __gcclibcxx_demangle_callback(const char* symbol,  // NOLINT: libstdc++'s name
                                             void (*piece)(const char*, std::size_t, void*),
                                             void* text);

namespace pyinject::report {

namespace {

constexpr std::size_t kMostSymbol = 4096;
constexpr std::size_t kMostName = 4096;

struct Name {
  std::array<char, kMostName> text{};
  std::size_t size = 0;
  std::jmp_buf too_long{};
};

void add(const char* piece, std::size_t size, void* to) {
  auto& name = *static_cast<Name*>(to);
  if (size > kMostName - name.size) {
    std::longjmp(name.too_long, 1);  // NOLINT: it has no other end; frames of C, no destructors
  }
  std::string_view{piece, size}.copy(name.text.data() + name.size, size);
  name.size += size;
}

// False: SYMBOL is none of C++, or its name is too long.
bool demangle(const char* symbol, Name& name) {
  if (setjmp(name.too_long) != 0) {  // NOLINT
    return false;
  }
  return __gcclibcxx_demangle_callback(symbol, add, &name) == 0;
}

}  // namespace

std::string demangled(std::string symbol) {
  if (!symbol.starts_with("_Z") || symbol.size() > kMostSymbol) {
    return symbol;
  }
  Name name;
  return demangle(symbol.c_str(), name) ? std::string{name.text.data(), name.size} : symbol;
}

}  // namespace pyinject::report
