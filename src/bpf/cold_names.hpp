// Names and lines that were not in memory when the BPF program needed them; it cannot wait. They
// are read from the process afterwards, with retries.
#pragma once

#include "bpf/sampler_records.h"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::bpf {

class ColdNames {
 public:
  // The BPF program's entry for a process; nullopt: it has exited or exec'ed.
  using Find = std::function<std::optional<sampled_process>(std::uint32_t pid)>;
  using Read = std::function<bool(base::Pid, base::RemoteAddress, std::span<std::byte>)>;
  ColdNames(Find find, Read read) : find_{std::move(find)}, read_{std::move(read)} {}

  // RECORD, with its missing parts added if they are readable; valid until the next call.
  [[nodiscard]] std::span<const std::byte> complete(std::span<const std::byte> record);
  // Calls TAKE for records that complete() could not complete and that are complete now.
  void try_again(const std::function<void(std::span<const std::byte>)>& take);
  // Number of code objects without a name, so far or permanently.
  [[nodiscard]] std::uint64_t unnamed() const;

 private:
  enum class Outcome { kRead, kNotYet, kGone };

  // Reads into record_.
  Outcome read_all(sampled_name_head head);
  [[nodiscard]] bool is_there(const sampled_process& process, const sampled_name_head& head,
                              std::span<std::byte> code) const;
  struct Text {
    std::vector<std::byte> bytes;
    std::uint8_t width = 0;
    bool cut = false;
  };
  [[nodiscard]] std::optional<Text> read_text(base::Pid pid, const sampled_process& process,
                                              base::RemoteAddress text, std::size_t most) const;
  [[nodiscard]] std::optional<std::vector<std::byte>> read_lines(base::Pid pid,
                                                                 const sampled_process& process,
                                                                 base::RemoteAddress table);

  Find find_;
  Read read_;
  std::vector<sampled_name_head> left_;  // to be retried
  std::uint64_t never_named_ = 0;
  std::unordered_map<int, std::uint64_t> long_tables_;  // bytes of them, by pid
  std::vector<std::byte> record_;
};

}  // namespace pyinject::bpf
