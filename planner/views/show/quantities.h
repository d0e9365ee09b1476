// Numbers with their units, as people read them: FLOPs, seconds, and the bytes of a rank's memory by category. The
// tables in the terminal and the page print the same texts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/predict/estimate/memory.h"

namespace planwright {

// None of these prints an infinite number or none as a figure: it is "unknown".

// Four digits and a decimal prefix: "75.78 TFLOP".
std::string FlopText(double flops);

// Three digits in seconds, milliseconds or microseconds: "7.31 s", "12.4 ms".
std::string SecondsText(double seconds);

// What part of the whole is, in per cent with so many digits after the point: "12.5 %". Nothing of a whole of nothing
// is 0 %.
std::string PercentOf(double part, double whole, int digits);

// So many digits: "8214.3".
std::string DigitsText(double number, int digits);

// Hours, or hours of ranks: four digits, and all that are before the point: "0.8333", "304.7", "80,431"; from
// 10^15 on "more than 1,000,000,000,000,000".
std::string HoursText(double hours);

// What a budget takes, with its unit: "0.8333 h"; less than a minute as SecondsText.
std::string LongTimeText(double hours);

// Three digits and a decimal unit: "12.3 MB".
std::string BytesText(int64_t bytes);

// One part of a rank's memory (docs/memory.md).
struct MemoryCategory {
  const char* name;
  const char* fill;  // the character that draws it in a bar of the terminal
  int64_t MemoryBytes::*bytes;
};

// In the order in which bars are drawn and columns printed. The page colors them c0, c1, ... in this order (style.cc).
inline constexpr std::array<MemoryCategory, 6> kMemoryCategories = {
    {{"parameters", "█", &MemoryBytes::parameters},
     {"gradients", "▓", &MemoryBytes::gradients},
     {"optimizer", "▒", &MemoryBytes::optimizer},
     {"activations", "░", &MemoryBytes::activations},
     {"communication", "▚", &MemoryBytes::communication},
     {"workspace", "▪", &MemoryBytes::workspace}}};

struct MemoryUnit {
  const char* name;
  double bytes;
  std::string Text(int64_t amount) const;  // "59.93 GB"
};

// One unit for all bytes of a plan, so that they can be compared at a glance: GB (1e9 bytes), or MB if every role needs
// less than 1 GB.
MemoryUnit MemoryUnitOf(const std::vector<RoleEstimate>& estimates);

}  // namespace planwright
