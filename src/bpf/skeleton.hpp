// The loaded program of sampler.bpf.c. Only in builds with BPF.
#pragma once

#include "bpf/program_time.hpp"
#include "bpf/sampler_records.h"
#include "sampler.skel.h"

#include <memory>

namespace pyinject::bpf {

struct SkeletonDeleter {
  void operator()(sampler_bpf* skeleton) const {
    add_program_time(skeleton->obj);
    sampler_bpf__destroy(skeleton);
  }
};
using Skeleton = std::unique_ptr<sampler_bpf, SkeletonDeleter>;

}  // namespace pyinject::bpf
