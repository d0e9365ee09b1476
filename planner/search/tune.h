// Which layout of a recipe is the fastest: a search over everything that does not change the loss curve, by the
// predicted time of a step (predict/estimate/step_time.h) among layouts that fit memory (docs/decisions/0025-tune.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_speed.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

struct TuneProgress {
  double space = 0;       // candidates in all
  int64_t timed = 0;      // candidates that were timed from blocks
  int64_t simulated = 0;  // of these, with all their instructions
  double best = 0;        // seconds of a step, of the fastest so far; 0: none yet
};

// Before a search.
struct TuneStart {
  std::vector<Diagnostic> problems;  // of the recipe as it was given: errors that another layout may be without
  double candidates = 0;             // about so many are searched
};

// How far the difference between two predicted steps is off, as a share of a step: medians of pairs of measured runs
// (docs/decisions/0051-the-error-of-a-difference.md). Layouts have most of their work in common, so this is less than
// each step is off by itself.
struct DifferenceErrors {
  double same_grids = 0;   // of layouts with the same ranks and axes
  double other_grids = 0;  // of others
};
inline constexpr DifferenceErrors kDifferenceErrors = {.same_grids = 0.009, .other_grids = 0.028};

// What decides first among layouts that are equal within these errors.
enum class Preference { kSimple, kMemory };

// The simplest layout that takes at most so much longer than the fastest is always shown, as a share.
inline constexpr double kSimplestWithin = 0.03;

inline constexpr int64_t kSimulations = 1500;  // TuneRequest::simulations, unless it says more
// What lets such a search go on, for those who read its result.
inline constexpr char kMoreSimulations[] = "--simulations N lets it go on",
                      kMoreSeconds[] = "--seconds S lets it go on";

struct TuneRequest {
  YamlNode recipe;                     // its files merged (recipe_tree.h)
  std::vector<std::string> overrides;  // as ReadRecipe takes them
  int64_t gpus = 0;                    // ranks of the cluster; 0: as many as the given recipe uses
  // Keys that keep their value ("modules.language.parallel.tp"). A key stands for all that begin with it
  // ("modules.language").
  std::vector<std::string> fixed;
  size_t best = 10;  // rows that are returned
  Preference prefer = Preference::kSimple;
  int64_t margin = 0;  // bytes that stay free on each rank, where the device's memory is known
  double seconds = 0;  // after which the search stops with what it has; 0: no limit
  // Seconds after which nothing more of what was found is proved but one layout; 0: no limit.
  double proofs = 0;
  std::function<double()> clock;  // seconds since any moment; empty: of the wall clock. The limits count from the call
  // Timed candidates after which no further ones are begun; 0: no limit. Those that are timed together, which may be
  // thousands, are timed to their end.
  int64_t candidates = 0;
  // Bounds are near what they bound, and large spaces have many candidates that are nearly equal: after so many whole
  // simulations the gap is told instead of closed. For what is listed beside the fastest 100 more, or a fifteenth of
  // this if that is more, are simulated at most.
  int64_t simulations = kSimulations;
  const std::atomic<bool>* stop = nullptr;  // set by others: as if the time were over
  std::function<void(const TuneStart&)> begins;
  std::function<void(const TuneProgress&)> progress;
};

// A layout, with figures of the plan that `plan compile` makes of the recipe with `changes`.
struct TunedLayout {
  std::vector<std::string> changes;  // against the given recipe with its overrides: "modules.language.parallel.tp=2"
  std::string line;                  // "radio_encoder 8: tp 1 dp 8; language 56: tp 2 dp 28 ep 8; micro 1"
  double seconds = 0;                // of a step; of a device of unknown speed in FLOPs (TuneResult::seconds)
  std::optional<StepSpeed> speed;    // none: the speed of the device is unknown
  int64_t memory = 0, limit = 0;     // bytes of the fullest rank, as planned; of the device, 0: unknown
  // Ranks that wait most for others, and those for which they wait most, in the words of `plan show RECIPE time`:
  // "language.s0", "radio_encoder.s0, 2 samples of radio_encoder". Empty: none do.
  std::string waits, waits_for;
  double waiting = 0;      // share of a step that they wait
  std::string bound;       // what most of the chain that bounds the step is: "language.moe experts"
  double bound_share = 0;  // of the step
  std::string digest;      // of its plan
  bool equal = false;      // not slower than the fastest by more than the error of a difference
  bool simplest = false;   // of those that take at most kSimplestWithin longer than the fastest
  std::string simplicity;  // "2 axes beside dp, even stages, no recompute"
  // Of `best`: how many other layouts that were simulated differ from it by the layers of stages, buckets and overlap
  // alone, and are no more than `within` slower than the fastest.
  int64_t alike = 0;
  bool proved = false;  // it was compiled, every rule was proved, and `diff` says that the curve is the same
};

// What became of the candidates. Large spaces are counted without being listed, so `space` and `rules` may be averages.
struct TuneCounts {
  // The product of all choices, of the placings that the search came to. Each candidate is one of the next five.
  double space = 0;
  double rules = 0;   // not valid
  double memory = 0;  // do not fit the device
  double time = 0;    // a lower bound of their time is above the time of a better one
  double found = 0;   // valid, and fit: simulated with all their instructions
  double left = 0;    // undecided: the search was ended before
  // What the search did to know that.
  int64_t timed = 0;      // candidates that were timed from blocks
  int64_t simulated = 0;  // of these, with all their instructions
};

// Layers moved between the stages of the language model: beyond the candidates of the space, whose stages differ by at
// most one layer.
struct TuneMoved {
  bool possible = false;  // some layouts have stages, and no key that is fixed says which layers these have
  bool searched = false;  // false: the search was ended before
  // Candidates with other layers that were timed, and simulated.
  int64_t timed = 0, simulated = 0;
  double even = 0;                        // seconds of the fastest candidate of the space; 0: none fits
  std::string module;                     // the language model
  std::vector<std::string> even_modules;  // others whose layouts may have stages, which differ by at most one layer
};

// How a choice depends on a speed that was not measured.
struct TuneSensitivity {
  std::string what;     // "network", "link"
  double slower = 0;    // how many times slower it must be for another layout to be the fastest; 0: none of these is
  std::string instead;  // that layout's line
};

struct TuneResult {
  int64_t gpus = 0;                  // ranks of the search
  Cluster cluster;                   // that has them
  std::vector<std::string> changes;  // of the cluster, against the given recipe with its overrides
  std::string problem;               // why `best` is empty: no candidate is valid and fits
  // The rows of RowsOf (equal_layouts.h). Fewer than were asked for if all others take more than `within` longer than
  // the fastest.
  std::vector<TunedLayout> best;
  size_t asked = 0;   // TuneRequest::best
  double within = 0;  // a share: slower layouts are not searched, and not listed
  int64_t worth = 0;  // bytes that a layout must save to come before a faster one that is as simple
  Preference prefer = Preference::kSimple;
  int64_t margin = 0;                // TuneRequest::margin
  std::optional<TunedLayout> given;  // the recipe as it was given; none: on these GPUs it is not valid
  // Of the layouts within `within` that were simulated, a sample of the smaller ones among them: those of which none
  // other is both faster and smaller, fastest first.
  std::vector<TunedLayout> frontier;
  TuneCounts counts;
  bool seconds = true;     // false: the device is unknown, and times are FLOPs
  DifferenceErrors error;  // layouts closer than that to the fastest are equal; none of a device of unknown speed
  double fastest = 0;      // the least that a layout takes that was found; `best` may begin with an equal one
  TuneMoved moved;
  // No candidate that fits takes less; if `moved` was searched, whichever layers the stages have.
  double lower_bound = 0;
  double gap = 0;            // how far the fastest is above it, as a share; 0: it is the optimum
  bool interrupted = false;  // by a limit or the stop flag, before the optimum was proved
  bool timed_out = false;    // of `interrupted`: by TuneRequest::seconds
  double seconds_given = 0;  // TuneRequest::seconds
  bool at_limit = false;     // ended by TuneRequest::simulations: `best` may lack some, or the optimum is not proved
  std::vector<TuneSensitivity> sensitivity;
};

// What the clock of a request says.
double SecondsNow(const TuneRequest& request);

// Problems of the recipe go to `diagnostics`, with InvalidArgument, before anything is searched. A recipe that is
// invalid as it is can be tuned where some layout may make it valid (given_problems.h).
absl::StatusOr<TuneResult> Tune(const TuneRequest& request, Diagnostics& diagnostics);

}  // namespace planwright
