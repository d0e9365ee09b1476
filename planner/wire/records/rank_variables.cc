#include "planner/wire/records/rank_variables.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_fields.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/launch_environment.h"
#include "planner/plan/ranks_text.h"

namespace planwright {
namespace {

constexpr std::string_view kEnding = ".environment.json";

std::string FolderOf(const std::string& run_dir) { return run_dir + "/logs"; }

using ByValue = std::map<std::pair<std::string, std::string>, std::vector<int>>;

std::vector<RankVariable> ListOf(const ByValue& by_value) {
  std::vector<RankVariable> variables;
  for (const auto& [variable, ranks] : by_value) variables.push_back({variable.first, variable.second, ranks});
  return variables;
}

}  // namespace

std::vector<RankVariable> LibraryVariables(int rank) {
  ByValue found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !IsLibraryVariable(text.substr(0, equals))) continue;
    found[{std::string(text.substr(0, equals)), Printable(text.substr(equals + 1))}] = {rank};
  }
  return ListOf(found);
}

absl::Status WriteRankVariables(const std::string& run_dir, int rank, const std::vector<RankVariable>& variables) {
  const std::string folder = FolderOf(run_dir);
  ABSL_RETURN_IF_ERROR(MakeDirectories(folder));
  return WriteFileAtomically(absl::StrFormat("%s/rank%04d%s", folder, rank, kEnding),
                             JsonText(RankVariablesJson(variables), 1) + "\n");
}

std::vector<RankVariable> ReadRankVariables(const std::string& run_dir, int world_size) {
  ByValue found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(FolderOf(run_dir), error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().native().ends_with(kEnding)) continue;
    const absl::StatusOr<std::string> text = ReadWholeFile(entry->path().string(), kRankVariablesJson.bytes);
    if (!text.ok()) continue;
    const nlohmann::json json = ParseJson(*text, kRankVariablesJson).value_or(nlohmann::json());
    for (RankVariable& one : RankVariablesFrom(json)) {
      for (const int rank : one.ranks) {
        if (rank < world_size) found[{one.name, one.value}].push_back(rank);
      }
    }
  }
  for (auto& [variable, of] : found) std::sort(of.begin(), of.end());
  return ListOf(found);
}

nlohmann::ordered_json RankVariablesJson(const std::vector<RankVariable>& variables) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const RankVariable& one : variables)
    json.push_back({{"name", one.name}, {"value", one.value}, {"ranks", one.ranks}});
  return json;
}

std::vector<RankVariable> RankVariablesFrom(const nlohmann::json& json) {
  std::vector<RankVariable> variables;
  if (!json.is_array()) return variables;
  for (const nlohmann::json& one : json) {
    if (!one.is_object() || !FieldOf(one, "ranks").is_array()) continue;
    RankVariable variable = {TextOf(one, "name"), TextOf(one, "value"), {}};
    for (const nlohmann::json& rank : FieldOf(one, "ranks")) {
      if (rank.is_number_integer() && rank >= 0 && rank <= kLargestRank) variable.ranks.push_back(rank.get<int>());
    }
    if (!variable.name.empty() && !variable.ranks.empty()) variables.push_back(std::move(variable));
  }
  return variables;
}

std::vector<std::string> VariablesThatDiffer(const std::vector<RankVariable>& variables) {
  std::set<int> all;
  std::map<std::string, std::vector<const RankVariable*>> by_name;
  for (const RankVariable& one : variables) {
    all.insert(one.ranks.begin(), one.ranks.end());
    by_name[one.name].push_back(&one);
  }
  std::vector<std::string> lines;
  for (const auto& [name, values] : by_name) {
    std::set<int> without = all;
    std::vector<std::string> parts;
    for (const RankVariable* value : values) {
      parts.push_back(absl::StrCat(value->value, " on the nodes of ranks ", RanksText(value->ranks)));
      for (const int rank : value->ranks) without.erase(rank);
    }
    if (!without.empty())
      parts.push_back(absl::StrCat("not set on those of ranks ", RanksText({without.begin(), without.end()})));
    if (parts.size() > 1) lines.push_back(absl::StrCat(name, " differs: ", absl::StrJoin(parts, "; ")));
  }
  return lines;
}

}  // namespace planwright
