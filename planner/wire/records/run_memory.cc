#include "planner/wire/records/run_memory.h"

#include <utility>

#include "planner/base/json/json_fields.h"

namespace planwright {
namespace {

MemoryLine LineFrom(const nlohmann::json& json) {
  return {TextOf(json, "name"), IntegerOf(json, "planned", -kLargestCount, kLargestCount),
          IntegerOf(json, "measured", -kLargestCount, kLargestCount).value_or(0)};
}

}  // namespace

nlohmann::ordered_json RunMemoryJson(const RunMemory& memory) {
  using Json = nlohmann::ordered_json;
  const auto line_json = [](const MemoryLine& line) -> Json {
    return {{"name", line.name}, {"planned", line.planned ? Json(*line.planned) : Json()}, {"measured", line.measured}};
  };
  if (!memory.why_not.empty()) return memory.why_not;
  Json all = Json::array();
  for (const RoleMemory& role : memory.roles) {
    Json lines = Json::array();
    for (const MemoryLine& line : role.lines) lines.push_back(line_json(line));
    lines.push_back(line_json(role.all));
    all.push_back({{"role", role.role}, {"rank", role.rank}, {"bytes", std::move(lines)}});
  }
  return all;
}

std::optional<RunMemory> RunMemoryFrom(const nlohmann::json& json) {
  if (json.is_string()) return RunMemory{{}, json.get<std::string>()};
  if (!json.is_array()) return std::nullopt;
  RunMemory memory;
  for (const nlohmann::json& role : json) {
    if (!role.is_object()) continue;
    RoleMemory& added = memory.roles.emplace_back();
    added.role = TextOf(role, "role");
    added.rank = static_cast<int>(IntegerOf(role, "rank", 0, kLargestRank).value_or(0));
    for (const nlohmann::json& line : FieldOf(role, "bytes")) {
      if (line.is_object()) added.lines.push_back(LineFrom(line));
    }
    if (added.lines.empty()) continue;
    added.all = std::move(added.lines.back());
    added.lines.pop_back();
  }
  return memory;
}

}  // namespace planwright
