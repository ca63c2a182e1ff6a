// The targets whose Python stacks the BPF program reads.
#pragma once

#include "bpf/sampler.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/weave/weave_flags.hpp"
#include "record/native_refresh.hpp"
#include "weave/weave.hpp"

#include <ctime>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace pyinject::record {

class ReadTargets {
 public:
  // NATIVE: nullptr: C functions are not read. The references must outlive it.
  ReadTargets(weave::WeaveFlags flags, bpf::Sampler& sampler, NativeRefresh* native,
              base::Logger& logger)
      : flags_{std::move(flags)}, sampler_{sampler}, native_{native}, logger_{logger} {}

  // See StackSampler.
  [[nodiscard]] std::optional<python::Refusal> add(const python::Target& target);
  void keep_time_by(std::optional<clockid_t> clock) { clock_ = clock; }
  [[nodiscard]] weave::Interpreters interpreters();

 private:
  [[nodiscard]] std::optional<python::Refusal> read_from(const python::Target& target);
  void warn_without_tasks(const python::Target& target);
  void warn_without_gil(const python::Target& target);

  const weave::WeaveFlags flags_;
  bpf::Sampler& sampler_;
  NativeRefresh* const native_;
  base::Logger& logger_;
  std::optional<clockid_t> clock_;
  std::mutex mutex_;  // protects the members below
  weave::Interpreters interpreters_;
  // Versions that the user was warned about.
  std::set<std::string> without_tasks_;
  std::set<std::string> without_gil_;
};

}  // namespace pyinject::record
