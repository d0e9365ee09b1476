// What a search for layouts found: as text, as JSON and as a page (docs/tune.md#the-table).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planner/estimate/step_speed.h"
#include "planner/plan/plan.h"
#include "planner/tune/tune.h"

namespace planwright {

// What was found for one number of GPUs.
struct Found {
  int64_t gpus = 0;
  TuneResult result;               // without `best`: `problem` says why
  std::string problem;             // no layout is valid and fits
  std::string cluster;             // "h100_sxm, 33 nodes of 8"; of CPU ranks: "CPU ranks, ..."
  bool cpus = false;               // ranks compute on CPUs
  std::optional<StepSpeed> speed;  // of the first layout; none: the device is unknown

  const TunedLayout* chosen() const { return result.best.empty() ? nullptr : &result.best.front(); }
};

// "h100_sxm, 33 nodes of 8"
std::string ClusterText(const Cluster& cluster);

// The table of layouts, and what is known of them: the space, the gap, equal layouts, sensitivity.
std::string FoundText(const Found& found, size_t width);

// Of the table in the comments of a recipe: columns, and the most layouts.
inline constexpr size_t kCommentWidth = 116, kCommentLayouts = 5;
// A line for each number of GPUs.
std::string ScalingText(const std::vector<Found>& found, size_t width);

nlohmann::ordered_json FoundJson(const Found& found);

// A well-formed HTML page, complete by itself (planner/show/page). `title`: of the recipe.
std::string FoundPage(const std::string& title, const std::vector<Found>& found);

// Parts of these, the same in the terminal and on the page.
std::string StepText(const Found& found, double seconds);  // "3.21 s"; of an unknown device, FLOPs
std::string RateText(const Found& found, const TunedLayout& layout);
std::string MemoryText(const TunedLayout& layout);  // in the unit of `plan show RECIPE memory`
std::string WaitsText(const TunedLayout& layout);
std::string BoundText(const TunedLayout& layout);
std::string NameOfLayout(const Found& found, size_t index);  // of `best`: "1", "2 ="
// Sentences about the whole search.
std::vector<std::string> Remarks(const Found& found);

}  // namespace planwright
