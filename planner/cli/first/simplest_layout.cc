#include "planner/cli/first/simplest_layout.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/search/results/tunable_keys.h"

namespace planwright {
namespace {

// The median error of a predicted step, where predictions were held against runs (docs/step_time.md#held-out): what is
// nearer to the fastest may as well be faster.
constexpr double kErrorOfTimes = 0.06;

// What each search opens beyond those before it: keys that end so. The first one leaves every rank with whole models,
// the second puts experts on several ranks, the third runs layers again, the fourth splits tensors; null: all keys.
constexpr const char* kOpens[] = {"batch.micro_samples", ".parallel.ep", ".recompute", ".parallel.tp", nullptr};
constexpr size_t kSearches = std::size(kOpens);

// The part of the time that a narrow search may take, and what the last one leaves for its plans to be proved. When
// the time is over, each has one simulation and one proof to end.
constexpr double kNarrow = 0.1, kForProofs = 0.15;

std::vector<std::string> FixedIn(size_t search, const std::vector<std::string>& keys) {
  std::vector<std::string> fixed;
  if (kOpens[search] == nullptr) return fixed;
  for (const std::string& key : keys) {
    const auto opened = [&](const char* end) { return key.ends_with(end); };
    if (std::none_of(kOpens, kOpens + search + 1, opened)) fixed.push_back(key);
  }
  return fixed;
}

}  // namespace

absl::StatusOr<SimplestFound> FindSimplestLayout(const RunSearch& run, const std::function<bool()>& stopped,
                                                 const Recipe& recipe, const TuneRequest& request,
                                                 Diagnostics& diagnostics) {
  const std::vector<std::string> keys = TunableKeys(recipe);
  const double began = SecondsNow(request), all_seconds = request.seconds;
  const auto left = [&] { return all_seconds - (SecondsNow(request) - began); };
  std::vector<Found> all;
  double fastest = 0;
  for (size_t i = 0; i < kSearches && (i == 0 || !stopped()); ++i) {
    TuneRequest narrow = request;
    const std::vector<std::string> fixed = FixedIn(i, keys);
    narrow.fixed.insert(narrow.fixed.end(), fixed.begin(), fixed.end());
    if (all_seconds > 0) {
      if (i > 0 && left() <= 0) break;
      const bool last = i + 1 == kSearches;
      const double most = last ? left() - kForProofs * all_seconds : kNarrow * all_seconds;
      // At least a moment, so that whatever is found first is found.
      narrow.seconds = std::max(0.01 * all_seconds, std::min(most, left()));
      narrow.proofs = last ? std::max(narrow.seconds, left()) : narrow.seconds;
    }
    Diagnostics problems;
    absl::StatusOr<Found> found = run(narrow, problems);
    if (!found.ok()) {
      diagnostics = problems;
      return found.status();
    }
    if (found->chosen()) {
      const double seconds = found->result.fastest;
      fastest = fastest > 0 ? std::min(fastest, seconds) : seconds;
    }
    all.push_back(*std::move(found));
  }
  for (Found& found : all) {
    const TunedLayout* chosen = found.chosen();
    if (chosen == nullptr || chosen->seconds > (1 + kErrorOfTimes) * fastest) continue;
    SimplestFound simplest;
    simplest.why = absl::StrCat("the simplest within ", absl::StrFormat("%.0f", 100 * kErrorOfTimes),
                                " % of the fastest that was found (", StepText(found, fastest), ")");
    simplest.found = std::move(found);
    return simplest;
  }
  return SimplestFound{.found = std::move(all.back()), .why = {}};
}

}  // namespace planwright
