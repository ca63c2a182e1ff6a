// The labels of a process: its service, container and host.
#pragma once

#include "push/labels.hpp"
#include "push/owners.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pyinject::push {

// What a control group's path tells about its processes. Empty: nothing.
struct CgroupFacts {
  std::string unit;       // "web" for web.service
  std::string container;  // 64 hexadecimal digits
  std::string pod;        // the pod's uid, with dashes
};
// PATH: "system.slice/web.service", "kubepods.slice/.../cri-containerd-<id>.scope"
[[nodiscard]] CgroupFacts facts_of_cgroup(std::string_view path);

// service_name: OTEL_SERVICE_NAME of the process's environment, else its systemd unit, else its
// name. With container_id, pod_uid and hostname where they are known. Of a process that has exited,
// only its name and the host remain.
[[nodiscard]] Labels labels_of_process(const RecordedProcess& process);

// nullopt: no process has PID. Throws as procfs::read_stat().
[[nodiscard]] std::optional<LiveProcess> live_process(std::uint32_t pid);

}  // namespace pyinject::push
