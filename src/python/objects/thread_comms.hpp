// The names that threads of CPython 3.12 and 3.13 would have in the kernel if they were those of
// 3.14, which sets them itself (Thread._set_os_name in Lib/threading.py, gh-59705).
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"
#include "python/objects/object_reader.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::python {

struct ThreadComm {
  base::Tid tid;
  std::string name;  // printable, not empty, at most kMostCommBytes
  bool operator==(const ThreadComm&) const = default;
};

inline constexpr std::size_t kMostCommBytes = 15;  // TASK_COMM_LEN without its zero

// NAME as the kernel would keep it, made printable. CPython 3.14 cuts it at the same byte, but also
// inside of a character.
[[nodiscard]] std::string comm_of(std::string_view name);

// Reads them while the target runs. Not thread-safe.
class ThreadComms {
 public:
  // nullopt: TARGET gives its threads names itself, or its objects cannot be read.
  [[nodiscard]] static std::optional<ThreadComms> of(const Target& target);

  // Of the threads that the threading module has started, except those that have got another name
  // in the kernel from their program.
  [[nodiscard]] std::vector<ThreadComm> read();

 private:
  ThreadComms(base::ProcessId id, ObjectReader reader) : id_{id}, reader_{std::move(reader)} {}
  [[nodiscard]] bool has_inherited_comm(base::Tid tid,
                                        const std::optional<std::string>& main) const;

  struct Known {
    std::string name;
    bool inherited = false;  // its comm is that of the thread that started it
  };

  base::ProcessId id_;
  ObjectReader reader_;
  std::map<base::Tid, Known> known_;  // from the latest read()
};

}  // namespace pyinject::python
