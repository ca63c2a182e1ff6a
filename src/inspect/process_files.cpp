#include "inspect/process_files.hpp"

#include "base/text.hpp"
#include "procfs/descriptors.hpp"

#include <cstdint>
#include <string_view>

namespace pyinject::inspect {

void ProcessFiles::note(int descriptor) {
  if (descriptor >= 0 && !links_.contains(descriptor)) {
    links_.emplace(descriptor,
                   procfs::read_descriptor_link(pid_, descriptor).value_or(std::string{}));
  }
}

const procfs::Sockets& ProcessFiles::sockets() {
  if (!sockets_) {
    sockets_ = procfs::read_sockets(pid_);
  }
  return *sockets_;
}

std::string ProcessFiles::describe(int descriptor) {
  const auto [place, added] = known_.try_emplace(descriptor);
  auto& text = place->second;
  if (!added || descriptor < 0) {
    return text;
  }
  note(descriptor);
  text = links_.at(descriptor);
  constexpr std::string_view kSocket = "socket:[";
  if (!text.starts_with(kSocket) || !text.ends_with(']')) {
    return text;
  }
  const auto digits = std::string_view{text}.substr(kSocket.size());
  const auto inode = base::parse_number<std::uint64_t>(digits.substr(0, digits.size() - 1));
  const auto found = inode ? sockets().find(*inode) : sockets().end();
  if (found != sockets().end()) {
    text = procfs::to_string(found->second);
  }
  return text;
}

}  // namespace pyinject::inspect
