// What a search for layouts found: as text, as JSON and as a page (docs/tune.md#the-table).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/search/tune.h"

namespace planwright {

// What was found for one number of GPUs.
struct Found {
  TuneResult result;
  std::vector<Diagnostic> problems;  // of the given recipe on these GPUs, where nothing was found
  bool told = false;                 // they were, before the search
  bool searched = true;              // false: only `result.problem`, which says why not, and where are known

  bool cpus() const { return result.cluster.gpu == "none"; }  // ranks compute on CPUs
  const TunedLayout* chosen() const { return result.best.empty() ? nullptr : &result.best.front(); }
};

// "264 GPUs (h100_sxm, 33 nodes of 8)", "2 ranks (CPU ranks, 1 node of 2)"
std::string ClusterText(const Found& found);

// The table of layouts, and what is known of them: the space, the gap, equal layouts, sensitivity.
std::string FoundText(const Found& found, size_t width);
// The same for the comments of a recipe, below `introduction`: with the first few layouts.
std::string FoundComment(const std::string& introduction, Found found);
// A line for each number of GPUs.
std::string ScalingText(const std::vector<Found>& found, size_t width);

nlohmann::ordered_json FoundJson(const Found& found);

// A well-formed HTML page, complete by itself (planner/views/show/page). `title`: of the recipe.
std::string FoundPage(const std::string& title, const std::vector<Found>& found);

// Parts of these, the same in the terminal and on the page.
std::string StepText(const Found& found, double seconds);  // "3.21 s"; of an unknown device, FLOPs
std::string RateText(const TunedLayout& layout);
std::string MemoryText(const TunedLayout& layout);  // in the unit of `plan show RECIPE memory`
std::string WaitsText(const TunedLayout& layout);
// Its line, and how many others the row stands for.
std::string LayoutText(const TunedLayout& layout);
std::string BoundText(const TunedLayout& layout);
// What the gap is at most, rounded up: "0.0 %", "6.5 %"; "unknown".
std::string GapFigure(const Found& found);
std::string NameOfLayout(const Found& found, size_t index);  // of `best`: "1", "2 ="
// What an optimum is one of: "layouts with any layers in the stages of language"; empty: all layouts.
std::string SearchedText(const TuneResult& result);
// Sentences about the whole search.
std::vector<std::string> Remarks(const Found& found);

}  // namespace planwright
