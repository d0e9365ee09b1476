#include <cmath>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/paper/table.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/search/results/tuned_text.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

Json LayoutJson(const TuneResult& result, const TunedLayout& layout) {
  const auto role = [](const std::string& name) { return name.empty() ? Json() : Json(name); };
  return {{"layout", layout.line},
          {"changes", layout.changes},
          {result.seconds ? "seconds" : "flops", layout.seconds},
          {"tokens_per_second_per_rank", layout.speed ? Json(layout.speed->tokens_per_second) : Json()},
          {"memory", layout.memory},
          {"memory_limit", layout.limit > 0 ? Json(layout.limit) : Json()},
          {"waits", role(layout.waits)},
          {"waits_for", role(layout.waits_for)},
          {"waiting", layout.waiting},
          {"binds", role(layout.bound)},
          {"binds_share", layout.bound_share},
          {"digest", layout.digest},
          {"equal", layout.equal},
          {"alike", layout.alike},
          {"simplest", layout.simplest},
          {"simplicity", role(layout.simplicity)},
          {"proved", layout.proved}};
}

// Of large spaces they are averages.
Json CountJson(double count) {
  return count < 9e15 ? Json(static_cast<int64_t>(std::llround(count))) : Json(std::round(count));
}

Json LayoutsJson(const TuneResult& result, const std::vector<TunedLayout>& layouts) {
  Json json = Json::array();
  for (const TunedLayout& layout : layouts) json.push_back(LayoutJson(result, layout));
  return json;
}

}  // namespace

nlohmann::ordered_json FoundJson(const Found& found) {
  const TuneResult& result = found.result;
  const TuneCounts& counts = result.counts;
  const std::optional<StepSpeed> speed = found.chosen() ? found.chosen()->speed : std::nullopt;
  Json json = {{"gpus", result.gpus}};
  json["problem"] = found.chosen() ? Json() : Json(result.problem);
  json["problems"] = RenderJson(found.problems);
  json["given"] = result.given ? LayoutJson(result, *result.given) : Json();
  json["best"] = LayoutsJson(result, result.best);
  json["hours"] = speed ? Json(speed->hours) : Json();
  json["rank_hours"] = speed ? Json(speed->rank_hours) : Json();
  json["frontier"] = LayoutsJson(result, result.frontier);
  json["space"] = {{"candidates", CountJson(counts.space)},
                   {"rules", CountJson(counts.rules)},
                   {"memory", CountJson(counts.memory)},
                   {"time", CountJson(counts.time)},
                   {"found", CountJson(counts.found)},
                   {"left", CountJson(counts.left)},
                   {"timed", counts.timed},
                   {"simulated", counts.simulated}};
  json["within"] = result.within;
  json["error"] = {{"same_grids", result.error.same_grids}, {"other_grids", result.error.other_grids}};
  json["prefer"] = result.prefer == Preference::kSimple ? "simple" : "memory";
  json["margin"] = result.margin;
  const auto if_found = [&](double figure) { return found.chosen() && std::isfinite(figure) ? Json(figure) : Json(); };
  json["fastest"] = if_found(result.fastest);
  json["lower_bound"] = result.lower_bound > 0 ? if_found(result.lower_bound) : Json();
  json["gap"] = if_found(result.gap);
  const std::string searched = SearchedText(result);
  json["searched"] = searched.empty() ? "all layouts" : searched;
  const TuneMoved& moved = result.moved;
  json["moved"] = Json();
  if (moved.searched) {
    json["moved"] = {{"module", moved.module},
                     {"timed", moved.timed},
                     {"simulated", moved.simulated},
                     {"even", moved.even > 0 ? Json(moved.even) : Json()}};
  }
  json["interrupted"] = result.interrupted;
  const bool at_limit = result.at_limit && !result.interrupted;
  json["ended_early"] =
      !found.searched ? Json("not searched")
      : at_limit      ? Json(absl::StrCat(WithCommas(counts.simulated), " layouts were simulated; ", kMoreSimulations))
      : result.timed_out   ? Json(absl::StrCat(result.seconds_given, " s were over; ", kMoreSeconds))
      : result.interrupted ? Json("interrupted")
                           : Json();
  json["sensitivity"] = Json::array();
  for (const TuneSensitivity& sensitivity : result.sensitivity) {
    json["sensitivity"].push_back({{"what", sensitivity.what},
                                   {"slower", sensitivity.slower > 0 ? Json(sensitivity.slower) : Json()},
                                   {"instead", sensitivity.slower > 0 ? Json(sensitivity.instead) : Json()}});
  }
  return json;
}

}  // namespace planwright
