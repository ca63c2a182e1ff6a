#include "python/objects/thread_comms.hpp"

#include "base/text.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"

#include <algorithm>
#include <variant>

namespace pyinject::python {

namespace {

constexpr Version kFirstThatNames{.major = 3, .minor = 14};

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80; }

}  // namespace

std::string comm_of(std::string_view name) {
  auto comm = base::printable(name, kMostCommBytes);
  auto end = std::min(comm.size(), kMostCommBytes);
  while (end > 0 && end < comm.size() && continues_character(comm[end])) {
    --end;
  }
  comm.resize(end);
  return comm;
}

std::optional<ThreadComms> ThreadComms::of(const Target& target) {
  if (target.version >= kFirstThatNames) {
    return std::nullopt;
  }
  auto reader = ObjectReader::of(target);
  if (auto* const readable = std::get_if<ObjectReader>(&reader)) {
    return ThreadComms{target.id, std::move(*readable)};
  }
  return std::nullopt;
}

// The program may have renamed its main thread since it started this one.
bool ThreadComms::has_inherited_comm(base::Tid tid, const std::optional<std::string>& main) const {
  const auto own = procfs::read_comm(id_.pid, tid);
  return own && (own->starts_with("python") || own == main);
}

std::vector<ThreadComm> ThreadComms::read() {
  const auto main = procfs::read_comm(id_.pid, base::Tid{id_.pid.value()});
  std::map<base::Tid, Known> known;
  std::vector<ThreadComm> comms;
  for (const auto& thread : reader_.thread_names()) {
    if (!thread.certain || !thread.by_threading || thread.tid.value() == id_.pid.value()) {
      continue;
    }
    auto comm = comm_of(thread.name);
    const auto before = known_.find(thread.tid);
    const bool same = before != known_.end() && before->second.name == comm;
    const bool inherited = same ? before->second.inherited : has_inherited_comm(thread.tid, main);
    if (inherited && !comm.empty()) {
      comms.push_back({.tid = thread.tid, .name = comm});
    }
    known.emplace(thread.tid, Known{.name = std::move(comm), .inherited = inherited});
  }
  known_ = std::move(known);
  return procfs::has_ended(id_) ? std::vector<ThreadComm>{} : comms;
}

}  // namespace pyinject::python
