#include "planner/run_files/run_profile.h"

#include <utility>

#include "planner/run_files/json_fields.h"

namespace planwright {
namespace {

nlohmann::ordered_json RowJson(const ProfileRow& row) {
  return {{"name", row.name},
          {"times", row.times},
          {"device_ms", row.device},
          {"slowest_rank_ms", row.slowest_rank},
          {"idle_before_ms", row.idle_before},
          {"host_ms", row.host}};
}

double Number(const nlohmann::json& json, const char* key) { return NumberOf(json, key).value_or(0); }

ProfileRow RowFrom(const nlohmann::json& json) {
  return {.name = TextOf(json, "name"),
          .times = Number(json, "times"),
          .device = Number(json, "device_ms"),
          .slowest_rank = Number(json, "slowest_rank_ms"),
          .idle_before = Number(json, "idle_before_ms"),
          .host = Number(json, "host_ms")};
}

RoleProfile RoleFrom(const nlohmann::json& json) {
  RoleProfile role{.role = TextOf(json, "role"), .ranks = {}, .parts = {}};
  for (const nlohmann::json& rank : FieldOf(json, "ranks")) {
    if (rank.is_number_integer() && rank >= 0 && rank <= kLargestRank) role.ranks.push_back(rank.get<int>());
  }
  for (const nlohmann::json& part : FieldOf(json, "parts")) {
    if (!part.is_object()) continue;
    ProfilePart& added = role.parts.emplace_back(ProfilePart{RowFrom(part), {}});
    for (const nlohmann::json& kind : FieldOf(part, "instructions")) {
      if (kind.is_object()) added.kinds.push_back(RowFrom(kind));
    }
  }
  role.step = Number(json, "step_ms"), role.slowest_step = Number(json, "slowest_rank_ms");
  role.instructions = Number(json, "instructions_ms");
  role.slowest_instructions = Number(json, "slowest_rank_instructions_ms");
  role.communication = Number(json, "communication_ms"), role.overlap = Number(json, "overlap_ms");
  role.idle = Number(json, "idle_ms");
  return role;
}

}  // namespace

nlohmann::ordered_json RunProfileJson(const RunProfile& profile) {
  using Json = nlohmann::ordered_json;
  Json roles = Json::array();
  for (const RoleProfile& role : profile.roles) {
    Json parts = Json::array();
    for (const ProfilePart& part : role.parts) {
      Json whole = RowJson(part.whole), kinds = Json::array();
      for (const ProfileRow& row : part.kinds) kinds.push_back(RowJson(row));
      whole["instructions"] = std::move(kinds);
      parts.push_back(std::move(whole));
    }
    roles.push_back({{"role", role.role},
                     {"ranks", role.ranks},
                     {"step_ms", role.step},
                     {"slowest_rank_ms", role.slowest_step},
                     {"instructions_ms", role.instructions},
                     {"slowest_rank_instructions_ms", role.slowest_instructions},
                     {"communication_ms", role.communication},
                     {"overlap_ms", role.overlap},
                     {"idle_ms", role.idle},
                     {"parts", std::move(parts)}});
  }
  return {{"first_step", profile.steps.first}, {"last_step", profile.steps.last}, {"roles", std::move(roles)}};
}

std::optional<RunProfile> RunProfileFrom(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  const std::optional<int64_t> first = IntegerOf(json, "first_step", 1, kLargestCount),
                               last = IntegerOf(json, "last_step", 1, kLargestCount);
  const nlohmann::json& roles = FieldOf(json, "roles");
  if (!first || !last || !roles.is_array()) return std::nullopt;
  RunProfile profile{.steps = {*first, *last}, .roles = {}};
  for (const nlohmann::json& role : roles) {
    if (role.is_object()) profile.roles.push_back(RoleFrom(role));
  }
  return profile;
}

}  // namespace planwright
