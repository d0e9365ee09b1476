// Plans that could break a program or make it slow.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"
#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/cli/any_bytes_inputs.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using Json = nlohmann::ordered_json;

Json TinyPlan() {
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(InSource("recipes/") + "nemotron_moe_vlm_tiny.yaml", {}, problems);
  const std::optional<Plan> plan = recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
  Require(plan.has_value(), "the tiny recipe does not compile");
  return Json::parse(WritePlan(*plan));
}

// The text of a plan, with the digest of its contents if the reader gets so far.
std::string Mended(Json plan) {
  plan["digest"] = std::string(64, '0');
  std::string text = plan.dump();
  plan = nullptr;  // large, and no longer needed
  const std::string says = "its contents give ", message(ReadPlan(text).status().message());
  if (const size_t at = message.find(says); at != std::string::npos) {
    const std::string field = "\"digest\":\"";
    text.replace(text.find(field) + field.size(), 64, message, at + says.size(), 64);
  }
  return text;
}

size_t ValuesIn(const Json& value) {
  size_t values = 1;
  for (const Json& inner : value) values += inner.is_structured() ? ValuesIn(inner) : 1;
  return values;
}

// Gives a copy of a list item another name.
Json Renamed(Json item, size_t number) {
  if (item.is_string()) {
    const std::string text = item.get<std::string>(), name = text.substr(0, text.find(':'));
    return name + std::to_string(number) + text.substr(name.size());
  }
  if (!item.is_object()) return item;
  for (const char* field : {"name", "frame"}) {
    if (item.contains(field)) item[field] = item[field].get<std::string>() + "." + std::to_string(number);
  }
  return item;
}

// Paths of a plan's lists that have items, one of each kind.
void FindLists(const Json& value, const std::string& path, const std::string& kind,
               std::map<std::string, std::string>& lists) {
  if (!value.is_structured()) return;
  if (value.is_array() && !value.empty()) lists.emplace(kind, path);
  for (const auto& [key, inner] : value.items())
    FindLists(inner, path + "/" + key, kind + (value.is_array() ? "/*" : "/" + key), lists);
}

// Makes each list of a plan as long as a plan may be.
template <bool differ>
void PlansOfLongLists(const Inputs& in) {
  const Json plan = TinyPlan();
  const size_t values = ValuesIn(plan), bytes = plan.dump().size();
  std::map<std::string, std::string> lists;
  FindLists(plan, "", "", lists);
  for (const auto& [kind, path] : lists) {
    const Json item = plan[Json::json_pointer(path)].back();
    const size_t most = std::min((kMostPlanValues - values - 1) / ValuesIn(item),
                                 (kLargestPlan - bytes - 100) / (item.dump().size() + 8));
    Json longer = plan;
    Json& list = longer[Json::json_pointer(path)];
    for (size_t i = 0; i < most; ++i) list.push_back(differ ? Renamed(item, i) : item);
    in.Ends({"validate", in.Write("p.json", Mended(std::move(longer)))}, path);
  }
}

}  // namespace

void PlansThatClaimTooMuch(const Inputs& in) {
  constexpr size_t kMost = kLargestPlan - 100;
  const std::string open = "{\"format_version\": " + std::to_string(kPlanFormatVersion) + ", ",
                    roles = open + "\"roles\": [";
  std::vector<std::string> texts = {Times(kMost, "["),
                                    Times(kMost, "{\"a\":"),
                                    open + "\"blocks\": " + Times(kMost, "["),
                                    open + "\"world_size\": 1" + std::string(1000, '0') + "}",
                                    open + "\"world_size\": 2147483647}",
                                    open + "\"seed\": 1e999}",
                                    open + Times(kMost, "\"a\":0,") + "\"b\":1}",
                                    open + "\"name\": \"" + std::string(kMost, 'x') + "\"}",
                                    open + "\"name\": \"\xff\"}",
                                    "{\"format_version\": 1e400}",
                                    "{\"format_version\": " + std::string(kMost, '9') + "}"};
  // More values than allowed, and exactly as many, short and long ones.
  for (const char* piece : {"0,", "[],", "{},", "\"\",", "{\"op\":\"\"},", "1.5e300,", "\"0123456789\",", "[[[[]]]],",
                            "{\"op\":{\"op\":[]}},"}) {
    texts.push_back(roles + Times(kMost, piece) + "0]}");
    const size_t each = std::count_if(piece, piece + std::char_traits<char>::length(piece),
                                      [](char c) { return c == '[' || c == '{'; });
    texts.push_back(roles +
                    Times(std::min(kMost, std::char_traits<char>::length(piece) *
                                              (kMostPlanValues / std::max<size_t>(each, 1) - 8)),
                          piece) +
                    "0]}");
  }
  for (const std::string& text : texts) in.Refused({"validate", in.Write("p.json", text)}, text.substr(0, 60));
}

void PlansOfOneItemOverAndOver(const Inputs& in) { PlansOfLongLists<false>(in); }
void PlansOfItemsThatDiffer(const Inputs& in) { PlansOfLongLists<true>(in); }

// Small files that need much memory or work.
void PlansThatMultiply(const Inputs& in) {
  const Json plan = TinyPlan();
  for (const bool framed : {false, true}) {
    for (int levels = 1; levels < kDeepestCalls; ++levels) {
      // Blocks that call each other as often as limits allow.
      const auto each = static_cast<size_t>(std::pow(static_cast<double>(kMostCalls) / 3, 1.0 / levels));
      Json calling = plan;
      for (int level = 0; level < levels; ++level) {
        Json call = {{"op", "call"},
                     {"block", level + 1 < levels ? "b" + std::to_string(level + 1) : "language.embed.forward"}};
        if (framed) call["frame"] = "language.embed";
        calling["blocks"].push_back(
            {{"name", "b" + std::to_string(level)}, {"module", "language"}, {"body", Json(each, call)}});
      }
      calling["roles"][0]["step"].push_back(
          {{"op", "call"}, {"block", "b0"}, {"frame", "language.s0"}, {"microbatch", 0}});
      in.Ends({"validate", in.Write("p.json", Mended(std::move(calling)))},
              std::to_string(levels) + " levels of calls");
    }
  }
  for (const int64_t step : {0, 1, 3}) {
    for (const int64_t rows : {kMostListed - 100, kMostListed, kMostRanks}) {
      Json run = plan;
      run["bridges"][0]["forward"] = Json::array({{0, 0, 0, 1, rows, step, step, 1, 1}});
      in.Ends({"validate", in.Write("p.json", Mended(std::move(run)))}, "a run of transfers");
    }
  }
  for (const size_t ranges : {1, 2, 1000, 30000}) {
    Json world = plan;
    world["world_size"] = kMostRanks;
    for (Json& module : world["modules"]) module["grid"]["dp"] = module["grid"]["expert_dp"] = kMostRanks;
    world["roles"][0]["ranks"] = Json(ranges, {{"first", 0}, {"count", kMostRanks}, {"stride", 1}});
    in.Ends({"validate", in.Write("p.json", Mended(std::move(world)))}, std::to_string(ranges) + " worlds");
  }
}

}  // namespace planwright::testing
