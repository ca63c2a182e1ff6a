// The debug offsets that an interpreter publishes, and the structures read with them.
#include "fuzz/fuzz.hpp"
#include "pyinject/python/reason.hpp"
#include "python/layout/runtime_layout.hpp"
#include "python/layout/runtime_view.hpp"

namespace pyinject::fuzz {
namespace {

using base::RemoteAddress;
using python::RuntimeLayout;

void plausible(const RuntimeLayout& layout) {
  for (const auto offset : {layout.finalizing, layout.interpreters_main, layout.pending_calls}) {
    require(offset <= layout.runtime_size, "what is in the runtime is inside it");
  }
  for (const auto offset :
       {layout.next_thread, layout.thread_interpreter, layout.thread_id, layout.gil_locked}) {
    require(offset <= 4096, "thread states and locks are small");
  }
  require(layout.interpreter_size == 0 || layout.eval_frame < layout.interpreter_size,
          "eval_frame is in the interpreter state");
}

void look(const RuntimeLayout& layout, std::span<const std::byte> bytes) {
  const HostileMemory memory{bytes};
  const python::RuntimeView view{memory, layout, RemoteAddress{0x1000}};
  (void)view.initialized();
  (void)view.finalizing();
  require(view.interpreters().size() <= 1000, "lists of interpreters end");
  const auto interpreter = view.main_interpreter().value_or(RemoteAddress{0x2000});
  const auto threads = view.threads(interpreter);
  require(threads.size() <= 32768, "lists of threads end");
  for (const auto& thread : threads) {
    require(!thread.address.is_null(), "a thread state is somewhere");
  }
  const auto thread = threads.empty() ? RemoteAddress{0x3000} : threads.front().address;
  (void)view.main_thread();
  (void)view.holds_gil(interpreter, thread);
  (void)view.signal_pending(thread);
  (void)view.observed(interpreter, thread);
}

}  // namespace

void run(Input input) {
  const auto version = python::version_from_hex(input.take<std::uint32_t>());
  const auto text = python::to_string(version);
  require(text.find_first_not_of("0123456789.abrc") == std::string::npos, "a version is a version");
  const auto parsed = python::parse_layout(version, input.rest());
  const auto* layout = std::get_if<RuntimeLayout>(&parsed);
  if (layout == nullptr) {
    require(is_printable(std::get<std::string>(parsed)), "what is wrong is said in plain text");
    return;
  }
  require(version.major == 3 && version.minor >= 12,
          "no layout is known for a Python that is too old");
  plausible(*layout);
  look(*layout, input.rest());
}

}  // namespace pyinject::fuzz
