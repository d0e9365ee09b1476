#include "planner/wire/records/run_profile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/base/json/json_fields.h"

namespace planwright {
namespace {

constexpr size_t kMostMisses = 10;  // in the file

nlohmann::ordered_json RowJson(const ProfileRow& row) {
  nlohmann::ordered_json json = {{"name", row.name},
                                 {"times", row.times},
                                 {"device_ms", row.device},
                                 {"slowest_rank_ms", row.slowest_rank},
                                 {"idle_before_ms", row.idle_before},
                                 {"host_ms", row.host}};
  if (row.predicted) json["predicted_ms"] = *row.predicted;
  return json;
}

double Number(const nlohmann::json& json, const char* key) { return NumberOf(json, key).value_or(0); }

ProfileRow RowFrom(const nlohmann::json& json) {
  return {.name = TextOf(json, "name"),
          .times = Number(json, "times"),
          .device = Number(json, "device_ms"),
          .slowest_rank = Number(json, "slowest_rank_ms"),
          .idle_before = Number(json, "idle_before_ms"),
          .host = Number(json, "host_ms"),
          .predicted = NumberOf(json, "predicted_ms")};
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
  role.idle = Number(json, "idle_ms"), role.predicted_step = NumberOf(json, "predicted_step_ms");
  role.predicted_communication = NumberOf(json, "predicted_communication_ms");
  role.waiting = NumberOf(json, "waiting_ms"), role.predicted_waiting = NumberOf(json, "predicted_waiting_ms");
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
                     {"idle_ms", role.idle}});
    if (role.predicted_step) roles.back()["predicted_step_ms"] = *role.predicted_step;
    if (role.predicted_communication) roles.back()["predicted_communication_ms"] = *role.predicted_communication;
    if (role.waiting) roles.back()["waiting_ms"] = *role.waiting;
    if (role.predicted_waiting) roles.back()["predicted_waiting_ms"] = *role.predicted_waiting;
    roles.back()["parts"] = std::move(parts);
  }
  Json json = {{"first_step", profile.steps.first}, {"last_step", profile.steps.last}, {"roles", std::move(roles)}};
  // Follows from the rows, for those who read them.
  for (const ProfileMiss& miss : WorstMisses(profile, kMostMisses)) {
    json["furthest_off"].push_back({{"role", miss.role},
                                    {"part", miss.part},
                                    {"instruction", miss.kind},
                                    {"device_ms", miss.measured},
                                    {"predicted_ms", miss.predicted}});
  }
  return json;
}

std::vector<ProfileMiss> WorstMisses(const RunProfile& profile, size_t most) {
  std::vector<ProfileMiss> misses;
  for (const RoleProfile& role : profile.roles) {
    for (const ProfilePart& part : role.parts) {
      for (const ProfileRow& row : part.kinds) {
        if (row.predicted) misses.push_back({role.role, part.whole.name, row.name, row.device, *row.predicted});
      }
    }
  }
  std::stable_sort(misses.begin(), misses.end(), [](const ProfileMiss& a, const ProfileMiss& b) {
    return std::abs(a.measured - a.predicted) > std::abs(b.measured - b.predicted);
  });
  if (misses.size() > most) misses.resize(most);
  return misses;
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
