// Values of a target's variables as short texts. Pure: any memory in, texts out.
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "python/objects/remote_objects.hpp"

#include <string>

namespace pyinject::python {

// OBJECT as Python's repr() writes it, as far as its memory shows it without running anything:
// None, numbers, str, bytes, ranges, the containers list, tuple, set, frozenset and dict with their
// contents, functions, classes and modules with their names, exceptions with their arguments.
// "Name(...)" is one of a class derived from these; all else is "<Name at 0x...>", and what is no
// object "?". Bounded: about 200 characters; "..." stands for what is left out. A text may have any
// characters but ASCII's control characters.
[[nodiscard]] std::string value_text(const RemoteObjects& objects, base::RemoteAddress object);

}  // namespace pyinject::python
