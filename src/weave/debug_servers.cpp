#include "weave/debug_servers.hpp"

#include <cstdlib>
#include <string_view>
#include <type_traits>

#include <dlfcn.h>

namespace pyinject::weave {

namespace {

#ifdef PYINJECT_STATIC
void* load() { return nullptr; }  // a static program cannot load what needs a shared C library
#else
void* load() { return ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL); }
#endif

// What debuginfod.h of elfutils declares.
struct Library {
  using Client = void*;
  using Progress = int (*)(Client client, long done, long all);

  Client (*begin)() = nullptr;
  void (*end)(Client client) = nullptr;
  // LENGTH 0: the id is in hexadecimal. Returns a descriptor, or the negative errno.
  int (*find_debuginfo)(Client client, const unsigned char* build_id, int length,
                        char** path) = nullptr;
  // The function returns 0 if the download is to go on.
  void (*set_progress)(Client client, Progress function) = nullptr;

  [[nodiscard]] bool complete() const {
    return begin != nullptr && end != nullptr && find_debuginfo != nullptr &&
           set_progress != nullptr;
  }
};

// Loaded once, and never unloaded: libcurl and its libraries keep state.
const Library& library() {
  static const Library loaded = [] {
    Library result;
    if (void* const handle = load(); handle != nullptr) {
      const auto find = [handle](auto& function, const char* name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      };
      find(result.begin, "debuginfod_begin");
      find(result.end, "debuginfod_end");
      find(result.find_debuginfo, "debuginfod_find_debuginfo");
      find(result.set_progress, "debuginfod_set_progressfn");
    }
    return result;
  }();
  return loaded;
}

bool servers_are_named() {
  const char* const urls = std::getenv("DEBUGINFOD_URLS");  // NOLINT(concurrency-mt-unsafe)
  return urls != nullptr && !std::string_view{urls}.empty();
}

// Of the call that this thread is in.
thread_local const base::Deadline* asked_until = nullptr;

int stop_when_late(Library::Client /*client*/, long /*done*/, long /*all*/) {
  return asked_until != nullptr && asked_until->expired() ? 1 : 0;
}

}  // namespace

bool DebugServers::usable() { return library().complete(); }

DebugServers::~DebugServers() {
  if (client_ != nullptr) {
    library().end(client_);
  }
}

base::UniqueFd DebugServers::debug_file(const std::string& build_id) {
  if (late_ || !servers_are_named() || !usable()) {
    return {};
  }
  if (!deadline_) {
    deadline_ = base::Deadline::after(most_);
    client_ = library().begin();
    if (client_ != nullptr) {
      library().set_progress(client_, stop_when_late);
    }
  }
  if (client_ == nullptr) {
    return {};
  }
  asked_until = &*deadline_;
  const int fd = library().find_debuginfo(
      client_, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, nullptr);
  asked_until = nullptr;
  late_ = fd < 0 && deadline_->expired();
  return base::UniqueFd{fd < 0 ? -1 : fd};
}

}  // namespace pyinject::weave
