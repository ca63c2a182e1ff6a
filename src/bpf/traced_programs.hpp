// The BPF programs for tracepoints, kprobes and uprobes. Only where the engine is built in.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

struct bpf_object;

namespace pyinject::bpf {

// A program of each type that the kernel accepts for such events, loaded when the first event needs
// it: the verifier takes longer than everything else. They share all maps with the sampler's.
class TracedPrograms {
 public:
  // Whether the program of each type has been set on an event of a perf.
  using Runs = std::array<bool, 2>;

  // SAMPLER must be loaded and outlive this.
  explicit TracedPrograms(const bpf_object* sampler) : sampler_{sampler} {}

  // Calls SET for an event with the descriptor of a program; SET returns 0 or the errno of its
  // failure. Returns 0 if the event's hits run the program, EINVAL if the event takes none of them,
  // or another errno.
  [[nodiscard]] int set(const std::function<int(int program)>& set, Runs& runs);

  // The same by an event of this process, at hits by any process and until stop(). A probe is put
  // into RECORDED, into which perf has put it, too (0: into all processes). False: the kernel
  // refuses.
  [[nodiscard]] bool run_at(std::uint64_t tracepoint, base::Pid recorded);
  void stop() { events_.clear(); }

 private:
  struct Close {
    void operator()(bpf_object* object) const;
  };
  struct Program {
    const char* name = "";
    std::unique_ptr<bpf_object, Close> object = nullptr;
    bool tried = false;  // to load it
    int fd = -1;         // -1: not loaded
  };
  void load(Program& program) const;

  const bpf_object* sampler_;
  std::map<std::uint64_t, base::UniqueFd> events_;  // by tracepoint
  std::array<Program, 2> programs_{Program{.name = "at_tracepoint"}, Program{.name = "at_probe"}};
};

}  // namespace pyinject::bpf
