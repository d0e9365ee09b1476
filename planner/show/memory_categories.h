// What a rank's memory is divided into, in the order in which it is drawn, and bytes as people read them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "planner/estimate/memory.h"
#include "planner/plan/plan.h"

namespace planwright {

struct MemoryCategory {
  const char* name;
  const char* fill;  // of its part of a bar in the terminal
  int64_t MemoryBytes::*bytes;
};

inline constexpr std::array<MemoryCategory, 6> kMemoryCategories = {
    {{"parameters", "█", &MemoryBytes::parameters},
     {"gradients", "▓", &MemoryBytes::gradients},
     {"optimizer", "▒", &MemoryBytes::optimizer},
     {"activations", "░", &MemoryBytes::activations},
     {"communication", "▚", &MemoryBytes::communication},
     {"workspace", "▪", &MemoryBytes::workspace}}};

// One unit for all numbers of a plan, so that they can be compared: GB (1e9 bytes), or MB for toys.
struct MemoryUnit {
  const char* name;
  double bytes;
  std::string Text(int64_t amount) const;  // "59.93 GB"
};
MemoryUnit UnitOf(const std::vector<RoleEstimate>& estimates);

}  // namespace planwright
