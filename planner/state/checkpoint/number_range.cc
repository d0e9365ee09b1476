#include "planner/state/checkpoint/number_range.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

// The first finite number that is at least `limit` in magnitude. Blocks are tested without branches, as weights are
// many and nearly all of them are small.
template <typename Bits, typename Number>
std::optional<int64_t> FirstFrom(std::span<const std::byte> bytes, Number limit) {
  constexpr size_t kBlock = 4096;  // elements
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const Bits low = std::bit_cast<Bits>(limit), infinite = std::bit_cast<Bits>(static_cast<Number>(INFINITY));
  const size_t count = bytes.size() / sizeof(Bits);
  const auto is_beyond = [&](size_t i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof bits);
    bits &= static_cast<Bits>(~kSign);
    return static_cast<Bits>(bits - low) < static_cast<Bits>(infinite - low);
  };
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t end = std::min(count, first + kBlock);
    bool found = false;
    for (size_t i = first; i < end; ++i) found |= is_beyond(i);
    for (size_t i = first; found && i < end; ++i) {
      if (is_beyond(i)) return static_cast<int64_t>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> FirstTooLarge(DType from, std::span<const std::byte> bytes, DType to) {
  // Half a step beyond the largest number of the narrower type, which ties to even: infinity.
  if (from == DType::kFp64 && to == DType::kFp32) return FirstFrom<uint64_t>(bytes, 0x1.ffffffp127);
  // By way of fp32: what is half a step of fp32 below that limit is rounded up to it first.
  if (from == DType::kFp64 && to == DType::kBf16) return FirstFrom<uint64_t>(bytes, 0x1.feffffp127);
  if (from == DType::kFp32 && to == DType::kBf16) return FirstFrom<uint32_t>(bytes, 0x1.ffp127F);
  return std::nullopt;
}

absl::Status CheckRange(const ElementReader& reader, const std::string& key, const std::vector<ElementRun>& runs,
                        std::span<const std::byte> bytes, DType to) {
  const DType from = reader.TypeOf(key).value().dtype;
  const int64_t width = DTypeBytes(from);
  for (const ElementRun& run : runs) {
    if (const auto at = FirstTooLarge(from, bytes.subspan(run.local * width, run.count * width), to)) {
      return absl::InvalidArgumentError(absl::StrCat(reader.PlaceOf(key), ": element ", run.whole + *at,
                                                     " is too large for ", std::string(DTypeName(to))));
    }
  }
  return absl::OkStatus();
}

}  // namespace planwright
