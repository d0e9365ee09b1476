// Searches for layouts on the command line, for `plan tune` and `plan init`: limits, progress, Ctrl-C.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cli/option.h"
#include "planner/cli/steady_lines.h"
#include "planner/recipe/recipe.h"
#include "planner/search/results/tuned_text.h"
#include "planner/search/tune.h"

namespace planwright {

// Seconds of wall time after which a search ends with what it has, unless --seconds says it: nobody waits longer for a
// layout without asking for it. Those of a first recipe, which any good layout does for.
inline constexpr double kSearchSeconds = 600, kFirstSearchSeconds = 20;

// The options that commands have in common which search.
struct SearchFlags : CommandOptions {
  TuneRequest request{.seconds = kSearchSeconds};
};

// --fix, --best, --prefer, --margin, --seconds, --candidates, --simulations. `seconds`: what helps call the default.
std::vector<Option> SearchOptions(double seconds = kSearchSeconds);

// One search or several. The first SIGINT or SIGTERM ends the one that goes on, which returns the best so far; a second
// one ends the program, as without this. On a terminal, stderr says how far a search is. Before a search that may take
// minutes it says so, and when it ends at the latest, unless `quiet`. `steady`: where stderr is no terminal, it says
// how far a search is; null: nothing does.
class LayoutSearch {
 public:
  explicit LayoutSearch(bool quiet, SteadyLines* steady = nullptr);
  ~LayoutSearch();
  LayoutSearch(const LayoutSearch&) = delete;
  LayoutSearch& operator=(const LayoutSearch&) = delete;

  // 0: no signal came.
  int signal() const;
  // Of one number of GPUs (0: those of the recipe). `request.seconds`: of this search. InvalidArgument: the recipe has
  // errors, which are in `diagnostics`, or cannot be searched on so many GPUs.
  absl::StatusOr<Found> Run(TuneRequest request, Diagnostics& diagnostics);

 private:
  const bool quiet_;
  SteadyLines* const steady_;
  std::optional<std::chrono::steady_clock::time_point> began_;  // the first search
};

// Where nothing was found: the problems of the recipe as it was given with `overrides`, on stderr, if they were not
// told before. `sources`: texts that problems point at and that are no files, by name.
void PrintGivenProblems(const Found& found, const std::vector<std::string>& overrides,
                        const std::map<std::string, std::string>& sources = {});

// Reads the text that shall be the recipe `path`, and compares its figures with those of the layout that it should
// have. The message of an error is for the user.
absl::Status CheckLayoutText(const std::string& path, const std::string& text, const TunedLayout& layout);

// Checks the text, and writes it.
absl::Status WriteLayoutRecipe(const std::string& path, const std::string& text, const TunedLayout& layout);

// Before a search: whether `path` can be written. InvalidArgument: it is no name for a recipe, or a file that is there
// and may not be replaced. `recipe`: of the search, which is never replaced. Errors of writing.
absl::Status CheckRecipeTarget(const std::string& path, bool replace, const std::string& recipe);

// InvalidArgument: `path`, which shall be written, is a file that the recipe was read from.
absl::Status CheckNotRead(const std::string& path, const Recipe& recipe);

// Whether two names are of one file, which need not be there.
bool SameFile(const std::string& a, const std::string& b);

}  // namespace planwright
