// What a head and its agents say to each other (docs/agents.md#protocol): a line of JSON for each message, with a field
// `kind`, over one proven connection (planner/wire/connection).
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "planner/base/json/json_limits.h"
#include "planner/run/launch/processes.h"
#include "planner/run/launch/rank_program.h"
#include "planner/wire/connection/proof.h"

namespace planwright {

inline constexpr Purpose kAgentsPurpose = {"planwright agents", "PWAGENT\2", "PWHEAD\n\2", "the head"};

inline constexpr size_t kLongestLine = kAgentLineJson.bytes;

// How often both ends say that they are there.
inline constexpr std::chrono::seconds kBeat{1};

// The message as it is sent.
std::string LineOf(const nlohmann::json& message);
// Takes the whole messages from the front of `in` and appends them. InvalidArgument: what came is no message, or a line
// that is too long.
absl::Status TakeMessages(std::string& in, std::vector<nlohmann::json>& messages);

// A text field of a message; empty if there is none.
std::string TextOf(const nlohmann::json& message, const char* key);

nlohmann::json EventJson(const ProcessEvent& event);
nlohmann::json PositionJson(const std::optional<RankPosition>& position);
nlohmann::json ProgramJson(const RankProgram& program);
// InvalidArgument if a field is missing or has another type.
absl::StatusOr<ProcessEvent> EventFrom(const nlohmann::json& message);
absl::StatusOr<std::optional<RankPosition>> PositionFrom(const nlohmann::json& message);
absl::StatusOr<RankProgram> ProgramFrom(const nlohmann::json& message);

}  // namespace planwright
