// Names and lines that were not in memory when the program in the kernel looked, which may not wait
// for them: they are read from the process afterwards, as often as it takes.
#pragma once

#include "bpf/sampler_records.h"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pyinject::bpf {

class ColdNames {
 public:
  // What the program knows of a process; nullopt: it has ended, or runs something else.
  using Find = std::function<std::optional<sampled_process>(std::uint32_t pid)>;
  using Read = std::function<bool(base::Pid, base::RemoteAddress, std::span<std::byte>)>;
  ColdNames(Find find, Read read) : find_{std::move(find)}, read_{std::move(read)} {}

  // RECORD, or what it would be with all in memory; valid until the next call.
  [[nodiscard]] std::span<const std::byte> complete(std::span<const std::byte> record);
  // Calls TAKE with those records that complete() could not complete and that are whole now.
  void try_again(const std::function<void(std::span<const std::byte>)>& take);
  // Codes that have no name yet, or will never have one.
  [[nodiscard]] std::uint64_t unnamed() const;

 private:
  enum class Outcome { kRead, kNotYet, kGone };

  // To record_.
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
                                                                 base::RemoteAddress table) const;

  Find find_;
  Read read_;
  std::vector<sampled_name_head> left_;  // to be tried again
  std::uint64_t never_named_ = 0;
  std::vector<std::byte> record_;
};

}  // namespace pyinject::bpf
