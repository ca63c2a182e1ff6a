#include "inspect/core_arguments.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include <elf.h>

namespace pyinject::inspect {

namespace {

constexpr std::size_t kMostWords = std::size_t{1} << 16U;  // pointers to arguments and variables
constexpr std::size_t kMostText = std::size_t{1} << 20U;   // bytes of all arguments
constexpr std::uint64_t kWord = sizeof(std::uint64_t);

std::optional<std::uint64_t> entry_of(std::span<const std::uint64_t> auxv, std::uint64_t type) {
  for (std::size_t i = 0; i + 1 < auxv.size(); i += 2) {
    if (auxv[i] == type) {
      return auxv[i + 1];
    }
  }
  return std::nullopt;
}

// Whether FOUND is AUXV on the stack. A loader that was run as a command has changed values there.
bool is_vector(std::span<const std::uint64_t> found, std::span<const std::uint64_t> auxv) {
  for (std::size_t i = 0; i + 1 < auxv.size(); i += 2) {
    if (found[i] != auxv[i] || (auxv[i] == AT_RANDOM && found[i + 1] != auxv[i + 1])) {
      return false;
    }
  }
  return true;
}

// The auxiliary vector on the stack is below the random bytes and the name of the platform.
std::optional<std::uint64_t> address_of(const memory::MemoryReader& memory,
                                        std::span<const std::uint64_t> auxv) {
  constexpr std::uint64_t kFurthest = 8192;
  const auto random = entry_of(auxv, AT_RANDOM);
  if (!random || *random < kFurthest) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> found(auxv.size());
  const auto last = *random / kWord * kWord;
  for (std::uint64_t at = last; last - at < kFurthest; at -= kWord) {
    if (memory.read_value<std::uint64_t>(base::RemoteAddress{at}) == auxv[0] &&
        memory.read(base::RemoteAddress{at}, std::as_writable_bytes(std::span{found})) &&
        is_vector(found, auxv)) {
      return at;
    }
  }
  return std::nullopt;
}

std::optional<std::string> text_at(const memory::MemoryReader& memory, std::uint64_t address,
                                   std::size_t& left) {
  constexpr std::uint64_t kPiece = 64;
  std::string text;
  while (left != 0) {
    // Not beyond a piece that may be the last one that is mapped.
    std::array<char, kPiece> bytes{};
    const auto size = std::min<std::uint64_t>(kPiece - address % kPiece, left);
    const auto piece = std::span{bytes}.first(static_cast<std::size_t>(size));
    if (!memory.read(base::RemoteAddress{address}, std::as_writable_bytes(piece))) {
      return std::nullopt;
    }
    const auto end = std::ranges::find(piece, '\0');
    text.append(piece.begin(), end);
    left -= static_cast<std::size_t>(end - piece.begin());
    if (end != piece.end()) {
      return text;
    }
    address += size;
  }
  return text;
}

// The words below ADDRESS in descending order, up to one for which IS_END(word, number of words
// before it). nullopt: there is none.
template <typename IsEnd>
std::optional<std::vector<std::uint64_t>> words_below(const memory::MemoryReader& memory,
                                                      std::uint64_t& address, IsEnd is_end) {
  std::vector<std::uint64_t> words;
  while (words.size() < kMostWords && address >= kWord) {
    address -= kWord;
    const auto word = memory.read_value<std::uint64_t>(base::RemoteAddress{address});
    if (!word) {
      return std::nullopt;
    }
    if (is_end(*word, words.size())) {
      return words;
    }
    words.push_back(*word);
  }
  return std::nullopt;
}

}  // namespace

// Upwards: the number of arguments, pointers to them, 0, pointers to variables, 0, the vector.
std::vector<std::string> core_arguments(const memory::MemoryReader& memory,
                                        std::span<const std::uint64_t> auxv) {
  auto at = address_of(memory, auxv);
  const auto is_null = [](std::uint64_t word, std::size_t) { return word == 0; };
  if (!at || memory.read_value<std::uint64_t>(base::RemoteAddress{*at - kWord}) != 0) {
    return {};
  }
  *at -= kWord;
  if (!words_below(memory, *at, is_null)) {
    return {};
  }
  auto pointers =
      words_below(memory, *at, [](std::uint64_t word, std::size_t count) { return word == count; });
  if (!pointers) {
    return {};
  }
  std::vector<std::string> arguments;
  std::size_t left = kMostText;
  std::ranges::reverse(*pointers);
  for (const auto pointer : *pointers) {
    auto text = text_at(memory, pointer, left);
    if (!text) {
      return {};
    }
    arguments.push_back(std::move(*text));
  }
  return arguments;
}

}  // namespace pyinject::inspect
