// The formats of tracepoints in a perf.data file.
#include "calls/tracing_data.hpp"
#include "fuzz/fuzz.hpp"

namespace pyinject::fuzz {

void run(Input input) {
  const auto bytes = input.rest();
  std::size_t total = 0;
  for (const auto& format : calls::parse_tracing_data(bytes)) {
    total += format.text.size() + 8;
    const auto text = calls::without_expressions(format.text);
    require(!text || text->size() < 5000, "what is handed on is small");
  }
  require(total <= bytes.size(), "every format is in the file, once");
}

}  // namespace pyinject::fuzz
