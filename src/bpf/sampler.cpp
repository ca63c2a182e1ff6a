#include "bpf/sampler.hpp"

#include "bpf/records.hpp"

#if PYINJECT_BPF

#include "base/file.hpp"
#include "bpf/cold_names.hpp"
#include "bpf/greenlet_module.hpp"
#include "bpf/libbpf_messages.hpp"
#include "bpf/load_error.hpp"
#include "bpf/native_tables.hpp"
#include "bpf/perf_events.hpp"
#include "bpf/sampled_process.hpp"
#include "bpf/skeleton.hpp"
#include "bpf/traced_programs.hpp"
#include "memory/process_memory.hpp"
#include "procfs/namespaces.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace pyinject::bpf {

namespace {

constexpr int kMostAtOnce = 1024;
constexpr std::chrono::seconds kColdNamesAgain{1};
constexpr const char* kKernelTypes = "/sys/kernel/btf/vmlinux";
constexpr std::size_t kMostTypes = std::size_t{64} << 20;  // distributions' have 5 to 10 MB

struct RingDeleter {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
using Ring = std::unique_ptr<ring_buffer, RingDeleter>;

// Whether a program can access the sample directly (Linux 6.2): the kernel has a function of this
// name. Reading all types and searching them takes half of the time that parsing them takes.
bool kernel_casts() {
  constexpr std::string_view kFunction{"\0bpf_cast_to_kern_ctx\0", 22};
  const auto types = base::read_file(kKernelTypes, kMostTypes);
  return types &&
         ::memmem(types->data(), types->size(), kFunction.data(), kFunction.size()) != nullptr;
}

class LoadedSampler : public Sampler {
 public:
  LoadedSampler(Skeleton skeleton, bool by_clock, Receiver receiver,
                std::shared_ptr<base::RecordingBudget> budget, bool native)
      : skeleton_{std::move(skeleton)},
        records_{std::move(receiver), std::move(budget), [this](std::uint32_t pid) { close(pid); }},
        by_clock_{by_clock} {
    if (native) {
      native_tables_.emplace(NativeTables::Maps{
          .segments = bpf_map__fd(skeleton_->maps.segments),
          .rules = bpf_map__fd(skeleton_->maps.rules),
          .natives = bpf_map__fd(skeleton_->maps.natives),
      });
    }
  }

  // Returns 0 or an error.
  int begin() {
    ring_.reset(ring_buffer__new(
        bpf_map__fd(skeleton_->maps.records),
        [](void* self, void* data, std::size_t size) {
          auto& sampler = *static_cast<LoadedSampler*>(self);
          sampler.records_.decode(
              sampler.cold_names_.complete({static_cast<const std::byte*>(data), size}));
          return --sampler.left_ > 0 ? 0 : -EAGAIN;  // ends ring_buffer__consume()
        },
        this, nullptr));
    if (!ring_) {
      return errno;
    }
    return -sampler_bpf__attach(skeleton_.get());
  }

  Added add(base::Pid pid, const python::FrameLayout& layout) override {
    auto process = process_of(layout);
    if (!process) {
      return Added::kUnfit;
    }
    process->greenlet_module = thread_locals_of_greenlet(pid);
    const auto key = static_cast<__u32>(pid.value());
    (void)bpf_map_delete_elem(bpf_map__fd(skeleton_->maps.stocks), &key);
    return bpf_map_update_elem(bpf_map__fd(skeleton_->maps.processes), &key, &*process, BPF_ANY) ==
                   0
               ? Added::kYes
               : Added::kFull;
  }

  void remove(base::Pid pid) override {
    const auto key = static_cast<__u32>(pid.value());
    (void)bpf_map_delete_elem(bpf_map__fd(skeleton_->maps.processes), &key);
  }

  void look_for_modules() override;
  [[nodiscard]] NativeTables* native_tables() override {
    return native_tables_ ? &*native_tables_ : nullptr;
  }

  void record_only(std::span<const base::Pid> pids) override {
    for (const auto pid : pids) {
      const auto key = static_cast<__u32>(pid.value());
      const __u8 one = 1;
      (void)bpf_map_update_elem(bpf_map__fd(skeleton_->maps.members), &key, &one, BPF_ANY);
    }
    skeleton_->bss->only_members = 1;
  }

  Attached attach(base::Pid perf, const EventsOfPerf& events) override {
    return set_on_each_event(perf, events, [](int event, int program) {
      return ::ioctl(event, PERF_EVENT_IOC_SET_BPF, program) == 0 ? 0 : errno;
    });
  }

  // Uses links: a program set by ioctl cannot be detached.
  Attached join(base::Pid perf, const EventsOfPerf& events) override {
    auto result = set_on_each_event(perf, events, [this](int event, int program) {
      base::UniqueFd link{bpf_link_create(program, event, BPF_PERF_EVENT, nullptr)};
      if (!link.valid()) {
        return errno;
      }
      links_.push_back(std::move(link));
      return 0;
    });
    if (result.taken) {
      leave();
      result.events = 0;
    }
    return result;
  }

  void leave() override {
    links_.clear();
    traced_.stop();
  }
  [[nodiscard]] bool by_clock() const override { return by_clock_; }

  [[nodiscard]] int fd() const override { return ring_buffer__epoll_fd(ring_.get()); }
  bool consume() override {
    left_ = kMostAtOnce;
    const bool more = ring_buffer__consume(ring_.get()) == -EAGAIN;
    if (cold_names_again_.expired()) {
      cold_names_.try_again([this](std::span<const std::byte> record) { records_.decode(record); });
      cold_names_again_ = base::Deadline::after(kColdNamesAgain);
    }
    return more;
  }

  [[nodiscard]] Counters counters() const override {
    return {.samples = counter(SAMPLER_COUNT_SAMPLES),
            .state_found = counter(SAMPLER_COUNT_FOUND),
            .state_searched = counter(SAMPLER_COUNT_SEARCHED),
            .truncated = counter(SAMPLER_COUNT_TRUNCATED),
            .unreadable = counter(SAMPLER_COUNT_UNREADABLE),
            .gil_held = counter(SAMPLER_COUNT_GIL_HELD),
            .gil_waited_for = counter(SAMPLER_COUNT_GIL_WAITED_FOR),
            .lost = counter(SAMPLER_COUNT_LOST),
            .lost_names = counter(SAMPLER_COUNT_LOST_NAMES) + cold_names_.unnamed(),
            .by_clock = counter(SAMPLER_COUNT_BY_CLOCK),
            .traced = counter(SAMPLER_COUNT_TRACED),
            .births = counter(SAMPLER_COUNT_BIRTHS)};
  }
  [[nodiscard]] std::vector<LostNames> lost_names() const override;

 private:
  // The program's entry for process KEY.
  [[nodiscard]] std::optional<sampled_process> find(__u32 key) const {
    sampled_process process{};
    return bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.processes), &key, &process) == 0
               ? std::optional{process}
               : std::nullopt;
  }
  // The kernel sends no further names for the process.
  void close(__u32 pid) {
    const int map = bpf_map__fd(skeleton_->maps.stocks);
    sampled_stock stock{};
    (void)bpf_map_lookup_elem(map, &pid, &stock);
    if (stock.closed == 0) {
      stock.closed = 1;
      (void)bpf_map_update_elem(map, &pid, &stock, BPF_ANY);
    }
  }
  [[nodiscard]] bool awaits_tasks(const sampled_process& process) const {
    return skeleton_->rodata->with_tasks != 0 && process.tasks_later != 0;
  }
  [[nodiscard]] bool lacks_module(const sampled_process& process) const {
    return awaits_tasks(process) || process.greenlet_module == 0;
  }
  [[nodiscard]] std::vector<__u32> without_modules() const;
  [[nodiscard]] std::uint64_t counter(__u32 which) const {
    const int processors = std::max(libbpf_num_possible_cpus(), 1);
    std::vector<std::uint64_t> values(static_cast<std::size_t>(processors));
    if (bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.counters), &which, values.data()) != 0) {
      return 0;
    }
    return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
  }

  // Descriptor of the program for events other than tracepoints and probes.
  [[nodiscard]] int program() const {
    return bpf_program__fd(by_clock_ ? skeleton_->progs.at_sample_by_clock
                                     : skeleton_->progs.at_sample);
  }

  using Set = std::function<int(int event, int program)>;
  [[nodiscard]] Attached set_on_each_event(base::Pid perf, const EventsOfPerf& events,
                                           const Set& set);

  Skeleton skeleton_;
  std::optional<NativeTables> native_tables_;
  Records records_;
  ColdNames cold_names_{[this](std::uint32_t pid) { return find(pid); },
                        [](base::Pid pid, base::RemoteAddress from, std::span<std::byte> into) {
                          return memory::ProcessMemory{pid}.read(from, into);
                        }};
  base::Deadline cold_names_again_ = base::Deadline::after(kColdNamesAgain);
  Ring ring_;
  TracedPrograms traced_{skeleton_->obj};
  std::vector<base::UniqueFd> links_;  // one per joined event
  bool by_clock_;
  __u32 looked_for_modules_ = 0;  // the last one of without_modules() that was checked
  int left_ = 0;                  // remaining records of this consume()
};

Sampler::Attached LoadedSampler::set_on_each_event(base::Pid perf, const EventsOfPerf& events,
                                                   const Set& set) {
  TracedPrograms::Runs runs{};
  bool taken = false;
  auto result = to_each_event(perf, [&](int event, Attached& so_far) {
    std::uint64_t id = 0;
    const bool known = ::ioctl(event, PERF_EVENT_IOC_ID, &id) == 0;
    if (known && std::ranges::binary_search(events.without_stacks, id)) {
      return 0;
    }
    const auto tracepoint = events.tracepoints.find(id);
    if (known && tracepoint != events.tracepoints.end() &&
        traced_.run_at(tracepoint->second, events.recorded)) {
      ++so_far.traced;
      return 0;
    }
    int problem = set(event, program());
    if (problem == EINVAL) {
      problem = traced_.set([&](int program) { return set(event, program); }, runs);
      so_far.traced += problem == 0 ? 1 : 0;
    }
    taken = taken || problem == EEXIST;
    return problem;
  });
  result.taken = taken;
  return result;
}

// In ascending order.
std::vector<__u32> LoadedSampler::without_modules() const {
  const auto* const map = skeleton_->maps.processes;
  std::vector<__u32> found;
  __u32 key = 0;
  const __u32* last = nullptr;
  // If LAST is removed in the meantime, the kernel starts again: hence the limit.
  for (auto left = bpf_map__max_entries(map);
       left > 0 && bpf_map_get_next_key(bpf_map__fd(map), last, &key) == 0; --left) {
    last = &key;
    if (const auto process = find(key); process && lacks_module(*process)) {
      found.push_back(key);
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<LostNames> LoadedSampler::lost_names() const {
  const auto* const map = skeleton_->maps.stocks;
  std::vector<LostNames> lost;
  __u32 key = 0;
  const __u32* last = nullptr;
  for (auto left = bpf_map__max_entries(map);
       left > 0 && bpf_map_get_next_key(bpf_map__fd(map), last, &key) == 0; --left) {
    last = &key;
    sampled_stock stock{};
    if (bpf_map_lookup_elem(bpf_map__fd(map), &key, &stock) == 0 && stock.refused != 0) {
      lost.push_back({.pid = key, .frames = stock.refused});
    }
  }
  return lost;
}

// Checks a few processes per call, in turn: each check reads all mappings of the process.
void LoadedSampler::look_for_modules() {
  constexpr std::size_t kAtOnce = 16;
  auto pids = without_modules();
  std::rotate(pids.begin(), std::ranges::upper_bound(pids, looked_for_modules_), pids.end());
  pids.resize(std::min(pids.size(), kAtOnce));
  for (const auto pid : pids) {
    looked_for_modules_ = pid;
    const auto before = find(pid);
    const base::Pid of{static_cast<int>(pid)};
    const auto offsets =
        before && awaits_tasks(*before) ? python::loaded_task_offsets(of) : std::nullopt;
    const auto greenlet =
        before && before->greenlet_module == 0 ? thread_locals_of_greenlet(of) : 0;
    auto process = find(pid);
    if ((offsets || greenlet != 0) && process && process->interpreters == before->interpreters) {
      if (offsets) {
        process->running_task = offsets->running;
        process->task_name = offsets->name;
        process->tasks_later = 0;
      }
      process->greenlet_module = greenlet != 0 ? greenlet : process->greenlet_module;
      (void)bpf_map_update_elem(bpf_map__fd(skeleton_->maps.processes), &pid, &*process, BPF_EXIST);
    }
  }
}

}  // namespace

bool built_in() { return true; }

std::variant<std::unique_ptr<Sampler>, Unavailable> Sampler::open(
    const SamplerOptions& options, Receiver receiver,
    std::shared_ptr<base::RecordingBudget> budget) {
  if (::access(kKernelTypes, R_OK) != 0) {
    return Unavailable{.name = "no_btf",
                       .found = fmt::format("the kernel has no type information (BTF): {}: {}",
                                            kKernelTypes, base::errno_text(errno)),
                       .remedy = "use a kernel with CONFIG_DEBUG_INFO_BTF"};
  }
  keep_libbpf_messages();
  Skeleton skeleton{sampler_bpf__open()};
  const auto own_namespace = procfs::own_namespace_number(procfs::Namespace::kPid);
  if (const int error = errno; !skeleton || !own_namespace) {
    return explain_load_failure(error, libbpf_message());
  }
  const bool by_clock = options.by_clock || !kernel_casts();
  bpf_program__set_autoload(skeleton->progs.at_sample, !by_clock);
  bpf_program__set_autoload(skeleton->progs.at_sample_by_clock, by_clock);
  bpf_program__set_autoload(skeleton->progs.at_tracepoint, false);
  bpf_program__set_autoload(skeleton->progs.at_probe, false);
  bpf_program__set_autoload(skeleton->progs.at_waking, options.wakeups);
  bpf_program__set_autoload(skeleton->progs.at_poll, options.polls);
  skeleton->rodata->own_pid_namespace = static_cast<std::uint32_t>(*own_namespace);
  skeleton->rodata->with_gil = options.gil ? 1 : 0;
  skeleton->rodata->with_tasks = options.tasks ? 1 : 0;
  skeleton->rodata->with_native = options.native ? 1 : 0;
  skeleton->rodata->python = every_python();
  skeleton->rodata->wake_at = bpf_map__max_entries(skeleton->maps.records) / 4;
  if (const int error = sampler_bpf__load(skeleton.get()); error != 0) {
    return explain_load_failure(-error, libbpf_message());
  }
  auto sampler = std::make_unique<LoadedSampler>(std::move(skeleton), by_clock, std::move(receiver),
                                                 std::move(budget), options.native);
  if (const int error = sampler->begin(); error != 0) {
    return explain_load_failure(error, libbpf_message());
  }
  return sampler;
}

}  // namespace pyinject::bpf

#else

namespace pyinject::bpf {

bool built_in() { return false; }

std::variant<std::unique_ptr<Sampler>, Unavailable> Sampler::open(
    const SamplerOptions& /*options*/, Receiver /*receiver*/,
    std::shared_ptr<base::RecordingBudget> /*budget*/) {
  return Unavailable{.name = "not_built",
                     .found = "this perf-pyinject was built without libbpf, clang or bpftool",
                     .remedy = "install these and build perf-pyinject again"};
}

}  // namespace pyinject::bpf

#endif
