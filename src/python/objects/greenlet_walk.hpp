// Finds greenlets that are suspended, and the functions in which they are. Pure: any memory in,
// values out.
#pragma once

#include "python/objects/remote_objects.hpp"
#include "python/objects/task_walk.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::python {

struct RawGreenlet {
  base::RemoteAddress address;
  std::string type = {};
  std::vector<RawAwait> frames = {};  // innermost first
  base::RemoteAddress stack = {};     // an address in the C stack that it uses
  bool whole = true;                  // false: outer functions could not be read
  bool operator==(const RawGreenlet&) const = default;
};

struct RawGreenlets {
  std::vector<RawGreenlet> greenlets;
  bool complete = true;  // false: not all objects were examined, or one is not as expected
};

inline constexpr std::size_t kMostGreenlets = 65536;
inline constexpr std::size_t kMostGreenletFrames = 4096;                      // of one
inline constexpr std::size_t kMostFramesOfGreenlets = std::size_t{1} << 20U;  // of all

// For greenlet 3.0 to 3.5 on builds with the GIL, where the garbage collector's lists have all
// greenlets.
class GreenletWalk {
 public:
  // GO_ON: called for each object; false: stop. It may invalidate the cache of OBJECTS' memory.
  GreenletWalk(const RemoteObjects& objects, std::function<bool()> go_on)
      : objects_{objects}, go_on_{std::move(go_on)} {}

  // Whether INTERPRETER has imported greenlet.
  [[nodiscard]] bool has_greenlets(base::RemoteAddress interpreter) const;
  // Those of INTERPRETER that have functions and do not run.
  [[nodiscard]] RawGreenlets list(base::RemoteAddress interpreter);

 private:
  // Part of a greenlet's implementation (class Greenlet in TGreenlet.hpp).
  struct State {
    std::uint64_t stack_start = 0;
    std::uint64_t stack_stop = 0;
    std::uint64_t stack_copy = 0;
    std::uint64_t stack_saved = 0;
    base::RemoteAddress top_frame;
  };
  [[nodiscard]] std::vector<base::RemoteAddress> list_heads(base::RemoteAddress interpreter) const;
  // False: the list has changed meanwhile, or GO_ON ended it.
  [[nodiscard]] bool follow(base::RemoteAddress head, std::vector<base::RemoteAddress>& greenlets);
  [[nodiscard]] bool is_greenlet(base::RemoteAddress object, base::RemoteAddress type);
  [[nodiscard]] std::optional<State> state_of(base::RemoteAddress greenlet) const;
  void read_frames(const State& state, RawGreenlet& greenlet);

  const RemoteObjects& objects_;
  std::function<bool()> go_on_;
  std::unordered_map<std::uint64_t, bool> types_;
  std::size_t frames_ = 0;  // of all greenlets so far
};

}  // namespace pyinject::python
