// The variables of its environment that a rank had and that can change what it does
// (planner/plan/launch_environment.h): RUN/logs/rank0008.environment.json, which the first rank of each node writes
// when it starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace planwright {

// A variable, and the ranks that had this value: of each node the first.
struct RankVariable {
  std::string name, value;
  std::vector<int> ranks;
  bool operator==(const RankVariable&) const = default;
};

// Those of this process, by name.
std::vector<RankVariable> LibraryVariables(int rank);

absl::Status WriteRankVariables(const std::string& run_dir, int rank, const std::vector<RankVariable>& variables);

// Those of all nodes, by name and value. What cannot be read is left out: a rank may have failed before it wrote.
std::vector<RankVariable> ReadRankVariables(const std::string& run_dir, int world_size);

nlohmann::ordered_json RankVariablesJson(const std::vector<RankVariable>& variables);
// What is none of them is left out.
std::vector<RankVariable> RankVariablesFrom(const nlohmann::json& json);

// A line for each variable that nodes have with different values, or that some lack.
std::vector<std::string> VariablesThatDiffer(const std::vector<RankVariable>& variables);

}  // namespace planwright
