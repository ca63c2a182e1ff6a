// SHA-1, FIPS 180-4: the hash that linkers use for build-ids. A target chooses the names in an
// image, but must not be able to choose the build-id.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace pyinject::weave {

using Sha1Digest = std::array<std::byte, 20>;

[[nodiscard]] Sha1Digest sha1(std::span<const std::byte> bytes);

}  // namespace pyinject::weave
