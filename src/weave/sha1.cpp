#include "weave/sha1.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>

namespace pyinject::weave {

namespace {

constexpr std::size_t kBlock = 64;

using State = std::array<std::uint32_t, 5>;

void add_block(State& state, std::span<const std::byte, kBlock> block) {
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < block.size(); ++i) {
    words[i / 4] = words[i / 4] << 8U | std::to_integer<std::uint32_t>(block[i]);
  }
  for (std::size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint32_t mixed = 0;
    if (i < 20) {
      mixed = ((b & c) | (~b & d)) + 0x5a827999U;
    } else if (i < 40) {
      mixed = (b ^ c ^ d) + 0x6ed9eba1U;
    } else if (i < 60) {
      mixed = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcU;
    } else {
      mixed = (b ^ c ^ d) + 0xca62c1d6U;
    }
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const State added = {a, b, c, d, e};
  std::ranges::transform(state, added, state.begin(), std::plus{});
}

}  // namespace

Sha1Digest sha1(std::span<const std::byte> bytes) {
  State state = {0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) {
    add_block(state, bytes.first<kBlock>());
  }
  // Padding: a one bit, zeros, and the length, in this block or in one more.
  std::array<std::byte, 2 * kBlock> last{};
  std::ranges::copy(bytes, last.begin());
  last[bytes.size()] = std::byte{0x80};
  const std::size_t padded = bytes.size() + 1 + sizeof bits <= kBlock ? kBlock : 2 * kBlock;
  for (std::size_t i = 0; i < sizeof bits; ++i) {
    last[padded - 1 - i] = static_cast<std::byte>(bits >> 8 * i);
  }
  for (std::size_t at = 0; at < padded; at += kBlock) {
    add_block(state, std::span{last}.subspan(at).first<kBlock>());
  }
  Sha1Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(state[i / 4] >> 8 * (3 - i % 4));
  }
  return digest;
}

}  // namespace pyinject::weave
