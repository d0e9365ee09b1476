#include "planner/exchange/convert.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

struct Bf16 {
  uint16_t bits;
};

float ToFloat(Bf16 number) { return std::bit_cast<float>(static_cast<uint32_t>(number.bits) << 16); }
float ToFloat(float number) { return number; }
float ToFloat(double number) { return static_cast<float>(number); }
double ToDouble(Bf16 number) { return ToFloat(number); }
double ToDouble(float number) { return number; }
double ToDouble(double number) { return number; }

Bf16 ToBf16(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  if (std::isnan(number)) return {static_cast<uint16_t>(bits >> 16 | 0x40U)};
  return {static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

// The nearest bf16 of an fp64, rounded once. On the way an fp32 that is not exact gets a last bit of 1, towards zero:
// so it is never halfway between two bf16 numbers, and lies on the side of the halfway point where the fp64 does.
Bf16 ToBf16(double number) {
  const auto near = static_cast<float>(number);
  if (std::isnan(number) || static_cast<double>(near) == number) return ToBf16(near);
  auto bits = std::bit_cast<uint32_t>(near);
  if (std::fabs(static_cast<double>(near)) > std::fabs(number)) --bits;
  return ToBf16(std::bit_cast<float>(bits | 1U));
}
Bf16 ToBf16(Bf16 number) { return number; }

template <typename From>
void Store(From number, float* to) {
  *to = ToFloat(number);
}
template <typename From>
void Store(From number, double* to) {
  *to = ToDouble(number);
}
template <typename From>
void Store(From number, Bf16* to) {
  *to = ToBf16(number);
}

template <typename From, typename To>
void ConvertAll(std::span<const std::byte> from, std::span<std::byte> to) {
  const size_t count = from.size() / sizeof(From);
  Require(to.size() == count * sizeof(To), "both sides of a conversion hold the same elements");
  for (size_t i = 0; i < count; ++i) {
    From number;
    To converted;
    std::memcpy(&number, from.data() + i * sizeof number, sizeof number);
    Store(number, &converted);
    std::memcpy(to.data() + i * sizeof converted, &converted, sizeof converted);
  }
}

template <typename From>
void ConvertFrom(std::span<const std::byte> from, DType to_type, std::span<std::byte> to) {
  switch (to_type) {
    case DType::kBf16: return ConvertAll<From, Bf16>(from, to);
    case DType::kFp32: return ConvertAll<From, float>(from, to);
    case DType::kFp64: return ConvertAll<From, double>(from, to);
    case DType::kInt64: Bug("weights are no integers");
  }
}

}  // namespace

void ConvertNumbers(DType from_type, std::span<const std::byte> from, DType to_type, std::span<std::byte> to) {
  if (from_type == to_type) {
    Require(from.size() == to.size(), "both sides of a conversion hold the same elements");
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  switch (from_type) {
    case DType::kBf16: return ConvertFrom<Bf16>(from, to_type, to);
    case DType::kFp32: return ConvertFrom<float>(from, to_type, to);
    case DType::kFp64: return ConvertFrom<double>(from, to_type, to);
    case DType::kInt64: Bug("weights are no integers");
  }
}

}  // namespace planwright
