// The callstacks of a sequence of packets in a Perfetto trace.
#pragma once

#include "export/intern_table.hpp"
#include "pyinject/report/profile.hpp"
#include "report/marks.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace pyinject::exports {

// Each sequence has its own interned data: an entry is written with the first packet that needs it.
// Identifiers are the profile's numbers plus 1.
class PerfettoStacks {
 public:
  PerfettoStacks(const report::Profile& profile, const report::UnmarkedStacks& stacks);

  // Adds to PACKET what the callstack of NODE, of the UnmarkedStacks, needs. Returns its
  // identifier; 0: it has no frames.
  std::uint64_t write(protozero::pbf_writer& packet, std::uint32_t node);

 private:
  void write_frame(protozero::pbf_writer& data, std::uint32_t frame);
  std::uint64_t write_function(protozero::pbf_writer& data, std::uint32_t function);
  std::uint64_t write_mapping(protozero::pbf_writer& data, const report::Function& function);
  std::uint64_t write_source(protozero::pbf_writer& data, const std::string& file);

  const report::Profile& profile_;
  const report::UnmarkedStacks& unmarked_;
  // What is written already.
  std::vector<bool> stacks_;
  std::vector<bool> frames_;
  std::vector<bool> functions_;
  InternTable mappings_;  // by path and build-id
  InternTable sources_;
  std::vector<std::uint32_t> path_;
};

}  // namespace pyinject::exports
