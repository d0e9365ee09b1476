// The most memory that the ranks of a run held, beside what the plan says: `memory` of outcome.json
// (docs/memory.md#measured).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace planwright {

// One category, in bytes.
struct MemoryLine {
  std::string name;
  std::optional<int64_t> planned;  // nullopt: the plan says nothing of it
  int64_t measured = 0;
  bool operator==(const MemoryLine&) const = default;
};

// What the rank of a role held that held most.
struct RoleMemory {
  std::string role;
  int rank = 0;
  std::vector<MemoryLine> lines;  // they add up to `all`
  MemoryLine all;                 // of the device
  bool operator==(const RoleMemory&) const = default;
};

struct RunMemory {
  std::vector<RoleMemory> roles;  // in the order of Plan::roles
  std::string why_not;            // why there are none; empty: there are
  bool operator==(const RunMemory&) const = default;
};

// A list of roles, or the text why there is none.
nlohmann::ordered_json RunMemoryJson(const RunMemory& memory);
// What RunMemoryJson wrote; nullopt if it is neither a list nor a text.
std::optional<RunMemory> RunMemoryFrom(const nlohmann::json& json);

}  // namespace planwright
