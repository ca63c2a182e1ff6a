#include "unwind/pieces.hpp"

#include <algorithm>
#include <iterator>

namespace pyinject::unwind {

namespace {

constexpr std::size_t kMostInChunk = 256;

}  // namespace

const Piece* Pieces::at(std::uint64_t address) const {
  const auto chunk = std::ranges::partition_point(
      chunks_, [&](const auto& one) { return one->back().end <= address; });
  if (chunk == chunks_.end()) {
    return nullptr;
  }
  const auto piece =
      std::ranges::partition_point(**chunk, [&](const Piece& one) { return one.end <= address; });
  return piece->begin <= address ? &*piece : nullptr;
}

Pieces::Range Pieces::touched(const Piece& piece) const {
  const auto first = std::ranges::partition_point(
      chunks_, [&](const auto& one) { return one->back().end <= piece.begin; });
  const auto last = std::partition_point(
      first, chunks_.end(), [&](const auto& one) { return one->front().begin < piece.end; });
  Range range{.first = static_cast<std::size_t>(first - chunks_.begin()),
              .last = static_cast<std::size_t>(last - chunks_.begin())};
  if (range.first == range.last && !chunks_.empty()) {  // between two chunks: the lower one grows
    range.first -= range.first == 0 ? 0 : 1;
    range.last = range.first + 1;
  }
  return range;
}

std::uint64_t Pieces::cost_of_put(const Piece& piece) const {
  const auto range = touched(piece);
  std::uint64_t bytes = 0;
  for (std::size_t i = range.first; i < range.last; ++i) {
    bytes += chunks_[i].use_count() > 1 ? chunks_[i]->size() * sizeof(Piece) : 0;
  }
  return bytes;
}

Pieces::Chunk& Pieces::own(Range range) {
  if (range.first == range.last) {
    return *chunks_.emplace_back(std::make_shared<Chunk>());
  }
  auto& first = chunks_[range.first];
  if (first.use_count() > 1) {
    first = std::make_shared<Chunk>(*first);
  }
  for (std::size_t i = range.first + 1; i < range.last; ++i) {
    first->insert(first->end(), chunks_[i]->begin(), chunks_[i]->end());
  }
  const auto begin = chunks_.begin() + static_cast<std::ptrdiff_t>(range.first) + 1;
  chunks_.erase(begin, begin + static_cast<std::ptrdiff_t>(range.last - range.first) - 1);
  return *chunks_[range.first];
}

void Pieces::put(const Piece& piece, const std::function<void(const Piece&)>& cut) {
  const auto range = touched(piece);
  auto& chunk = own(range);
  const auto first =
      std::ranges::partition_point(chunk, [&](const Piece& one) { return one.end <= piece.begin; });
  const auto last = std::partition_point(first, chunk.end(),
                                         [&](const Piece& one) { return one.begin < piece.end; });
  std::vector<Piece> instead;
  if (first != last && first->begin < piece.begin) {
    instead.push_back(*first);
    instead.back().end = piece.begin;
  }
  instead.push_back(piece);
  if (first != last && std::prev(last)->end > piece.end) {
    instead.push_back(*std::prev(last));
    instead.back().begin = piece.end;
  }
  std::for_each(first, last, cut);
  chunk.insert(chunk.erase(first, last), instead.begin(), instead.end());
  split(range.first);
}

void Pieces::split(std::size_t number) {
  while (chunks_[number]->size() > kMostInChunk) {
    auto& chunk = *chunks_[number];
    const auto middle = chunk.end() - static_cast<std::ptrdiff_t>(kMostInChunk / 2);
    auto behind = std::make_shared<Chunk>(middle, chunk.end());
    chunk.erase(middle, chunk.end());
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(number) + 1, std::move(behind));
  }
}

}  // namespace pyinject::unwind
