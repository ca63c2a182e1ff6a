// The mappings of one address space. A copy costs little: it shares what neither side changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace pyinject::unwind {

struct MappedFile;

// [begin, end) of a file's mapping, since FROM; a later one may have taken a part of it away.
struct Piece {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t from = 0;  // of the recording's clock, nanoseconds
  std::uint64_t until = ~std::uint64_t{0};
  const MappedFile* file = nullptr;
};

// Pieces ordered by address, without overlaps. Not thread-safe.
class Pieces {
 public:
  // Returns the piece that contains ADDRESS; nullptr: none.
  [[nodiscard]] const Piece* at(std::uint64_t address) const;

  // Puts PIECE in place of everything in its range. Calls CUT with each piece that loses a part of
  // its range, as that piece was before.
  void put(const Piece& piece, const std::function<void(const Piece&)>& cut);

  // Bytes that copying this object allocates, and that put() allocates to unshare chunks.
  [[nodiscard]] std::uint64_t cost_of_copy() const { return chunks_.size() * sizeof chunks_[0]; }
  [[nodiscard]] std::uint64_t cost_of_put(const Piece& piece) const;

 private:
  using Chunk = std::vector<Piece>;  // never empty
  struct Range {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  // The chunks that put() changes; empty only if there are no chunks.
  [[nodiscard]] Range touched(const Piece& piece) const;
  // Replaces the chunks of RANGE by one unshared chunk.
  [[nodiscard]] Chunk& own(Range range);
  void split(std::size_t number);

  std::vector<std::shared_ptr<Chunk>> chunks_;
};

}  // namespace pyinject::unwind
