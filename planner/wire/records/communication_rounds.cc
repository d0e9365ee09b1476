#include "planner/wire/records/communication_rounds.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/json/json_fields.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/json/json_text.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// Far above what a measurement asks for; products of these are small numbers still.
constexpr int64_t kMostBytes = int64_t{1} << 40, kMostRepeated = 1000, kMostOfShape = 1 << 20;

bool IsRound(const nlohmann::json& json, CommunicationRound& round) {
  if (!json.is_object()) return false;
  const std::optional<OpKind> kind = OpFromName(TextOf(json, "op"));
  const auto per_node = IntegerOf(json, "per_node", 1, kMostOfShape), nodes = IntegerOf(json, "nodes", 1, kMostOfShape);
  const auto bytes = IntegerOf(json, "bytes", 1, kMostBytes), batches = IntegerOf(json, "batches", 1, kMostRepeated);
  const auto repetitions = IntegerOf(json, "repetitions", 1, kMostRepeated);
  if (!kind || !per_node || !nodes || !bytes || !batches || !repetitions) return false;
  round = {.kind = *kind,
           .per_node = static_cast<int>(*per_node),
           .nodes = static_cast<int>(*nodes),
           .bytes = *bytes,
           .batches = *batches,
           .repetitions = *repetitions};
  const int64_t members = *per_node * *nodes;
  return OpClassOf(*kind) == OpClass::kCommunication && members >= 2 && members <= kMostOfShape &&
         (*kind != OpKind::kExchange || members == 2);
}

}  // namespace

std::vector<int> MembersOf(const CommunicationRound& round, int rank, int world_size, int ranks_per_node) {
  const int first_node = rank / ranks_per_node / round.nodes * round.nodes;
  const int first_place = rank % ranks_per_node / round.per_node * round.per_node;
  std::vector<int> members;
  for (int node = first_node; node < first_node + round.nodes; ++node) {
    for (int place = first_place; place < first_place + round.per_node; ++place) {
      const int64_t member = int64_t{node} * ranks_per_node + place;
      if (place >= ranks_per_node || member >= world_size) return {};
      members.push_back(static_cast<int>(member));
    }
  }
  return members;
}

std::string RoundsJson(const CommunicationRounds& rounds) {
  Json list = Json::array();
  for (const CommunicationRound& round : rounds.list) {
    list.push_back({{"op", OpName(round.kind)},
                    {"per_node", round.per_node},
                    {"nodes", round.nodes},
                    {"bytes", round.bytes},
                    {"batches", round.batches},
                    {"repetitions", round.repetitions}});
  }
  return JsonText(Json({{"ranks_per_node", rounds.ranks_per_node}, {"rounds", std::move(list)}}), 1) + "\n";
}

absl::StatusOr<CommunicationRounds> ReadRounds(std::string_view text) {
  const nlohmann::json json = ParseJson(text, kRoundsJson).value_or(nlohmann::json());
  const nlohmann::json& list = FieldOf(json, "rounds");
  const std::optional<int64_t> per_node = IntegerOf(json, "ranks_per_node", 1, kMostOfShape);
  if (!per_node || !list.is_array() || list.size() > kMostRounds)
    return absl::InvalidArgumentError("not a list of rounds of communications");
  CommunicationRounds rounds = {.ranks_per_node = static_cast<int>(*per_node)};
  for (const nlohmann::json& one : list) {
    if (!IsRound(one, rounds.list.emplace_back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("rounds[", rounds.list.size() - 1, "] is no communication that can be timed"));
    }
  }
  return rounds;
}

std::string RoundTimesPath(const std::string& run_dir, int rank) {
  return absl::StrFormat("%s/rounds/rank%04d.json", run_dir, rank);
}

std::string RoundTimesJson(const std::vector<std::vector<double>>& seconds) {
  return JsonText(Json({{"seconds", seconds}})) + "\n";
}

absl::StatusOr<std::vector<std::vector<double>>> ReadRoundTimes(std::string_view text, size_t rounds) {
  const nlohmann::json json = ParseJson(text, kRoundTimesJson).value_or(nlohmann::json());
  const nlohmann::json& list = FieldOf(json, "seconds");
  std::vector<std::vector<double>> seconds;
  bool right = list.is_array() && list.size() == rounds;
  for (size_t i = 0; right && i < list.size(); ++i) {
    seconds.emplace_back();
    right = list[i].is_array();
    for (size_t b = 0; right && b < list[i].size(); ++b) {
      right = list[i][b].is_number() && list[i][b].get<double>() >= 0;
      if (right) seconds.back().push_back(list[i][b].get<double>());
    }
  }
  if (!right) return absl::InvalidArgumentError("not the times of these rounds of communications");
  return seconds;
}

}  // namespace planwright
