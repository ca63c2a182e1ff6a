// Records for some seconds where the threads of a process spend their wall time. Nothing in the
// process is run, written or stopped.
#pragma once

#include "bpf/code_files.hpp"
#include "inspect/connection.hpp"
#include "procfs/kernel_symbols.hpp"
#include "procfs/usage.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/inspect/snapshot.hpp"
#include "pyinject/python/target.hpp"
#include "why/cpu_users.hpp"
#include "why/event_rings.hpp"
#include "why/recording.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

namespace pyinject::why {

class Recorder {
 public:
  // A string says why not, with the remedy. Throws base::Error.
  [[nodiscard]] static std::variant<std::unique_ptr<Recorder>, std::string> open(
      const python::Target& target, std::chrono::nanoseconds period);

  // Starts.
  void begin();
  // Records for some milliseconds, then returns; false: the process has exited, or executes another
  // program. Call it all the
  // time, since the buffers hold little more than that.
  bool step();
  // Ends. Call it once.
  [[nodiscard]] Recording finish();

 private:
  Recorder(const python::Target& target, std::chrono::nanoseconds period)
      : target_{target}, code_{target} {
    recording_.period = static_cast<std::uint64_t>(period.count());
  }
  void on_code(const sample::Code& code);
  void on_stack(const sample::Stack& stack);
  [[nodiscard]] std::variant<std::unique_ptr<bpf::Sampler>, bpf::Unavailable> open_sampler(
      bool polls);
  void on_moment(const bpf::Moment& moment, Event::Kind kind);
  void on_record(const RingRecord& record);
  void on_sample(const RingRecord& record, Event& event);
  void look_at_descendants();
  void look_at_connections();
  void look_at_cpu_limits();
  void correct_leaves(const RingRecord& out);
  void drain();
  // nullopt: the process cannot be read, or is another program meanwhile.
  [[nodiscard]] std::optional<inspect::ProcessSnapshot> look(
      const inspect::SnapshotOptions& options = {});
  void take_snapshot();
  void look_at_greenlets(inspect::ProcessSnapshot process);
  [[nodiscard]] Line own_line(const std::vector<python::AsyncFrame>& frames);
  void add_thread(const inspect::ThreadSnapshot& thread);
  void add_sighting(const inspect::ProcessSnapshot& process, const inspect::ThreadSnapshot& thread,
                    std::uint64_t time);
  [[nodiscard]] std::uint32_t stack_of(const std::vector<inspect::Frame>& frames);
  [[nodiscard]] std::set<std::uint32_t> list_threads() const;
  void add_usage();

  struct KnownCode {
    std::uint32_t function = 0;
    std::uint32_t file = 0;
    bool imports = false;
  };

  const python::Target target_;
  procfs::KernelSymbols symbols_ = procfs::KernelSymbols::read();
  bpf::CodeFiles code_;
  std::optional<EventRings> rings_;
  std::unique_ptr<bpf::Sampler> sampler_;
  Recording recording_;
  std::optional<std::size_t> leaves_;  // index of the latest kLeaves that no kOut has followed
  // By tid and time: corrected times of kLeaves, and so of their stacks.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> corrected_;
  std::unordered_map<std::uint64_t, KnownCode> codes_;
  struct {
    std::map<std::uint32_t, procfs::ThreadUsage> threads;
    std::optional<procfs::MachineUsage> machine;
    procfs::DescendantsUsage descendants;
    std::vector<procfs::CpuLimit> limits;
  } at_begin_;
  std::map<std::uint32_t, procfs::ThreadUsage> usage_;  // the latest of each thread
  CpuUsers users_;
  inspect::ListeningPorts listening_;
  std::set<std::vector<std::uint32_t>> deadlocks_;
  base::Deadline next_snapshot_ = base::Deadline::after(std::chrono::nanoseconds{0});
};

}  // namespace pyinject::why
