#include "planner/compile/budget/check_rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planwright {
namespace {

constexpr std::array kStyles = {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
constexpr std::array kWsdStyles = {"linear", "cosine", "exponential", "minus_sqrt"};
constexpr std::array kWeightDecayStyles = {"constant", "linear", "cosine"};

// `otherwise`: where to point if the recipe leaves the value at its default.
template <typename Choices>
bool CheckChoice(const Located<std::string>& value, const Choices& choices, const char* what, const Location& otherwise,
                 Diagnostics& diagnostics) {
  if (!AllKnown(value) || std::find(choices.begin(), choices.end(), *value) != choices.end()) return true;
  diagnostics.Error(DiagnosticKind::kUnknownChoice, value.where.known() ? value.where : otherwise,
                    absl::StrCat("there is no ", what, " '", *value, "'"),
                    absl::StrCat("choose one of ", absl::StrJoin(choices, ", ")));
  return false;
}

// less <= more, as the recipe must write them. False for NaN too, because the comparison is false then.
bool CheckOrder(DiagnosticKind kind, const char* less_name, const Located<double>& less, const char* more_name,
                const Located<double>& more, const Location& otherwise, Diagnostics& diagnostics) {
  if (!AllKnown(less, more) || *less <= *more) return true;
  const Location where = less.where.known() ? less.where : more.where.known() ? more.where : otherwise;
  Diagnostic& problem =
      diagnostics.Error(kind, where, absl::StrCat(less_name, " ", *less, " is above ", more_name, " ", *more),
                        absl::StrCat("make ", less_name, " at most ", more_name));
  if (more.where.known()) problem.notes.push_back({more.where, absl::StrCat(more_name, " is ", *more, " here")});
  return false;
}

bool CheckNotNegative(DiagnosticKind kind, const char* name, const Located<double>& value, const Location& otherwise,
                      Diagnostics& diagnostics) {
  if (*value >= 0) return true;
  diagnostics.Error(kind, value.where.known() ? value.where : otherwise, absl::StrCat(name, " is ", *value),
                    "use 0 or more");
  return false;
}

// Tells what `wsd` lacks, with values that trainings use: a straight decay in the last tenth. `end`: the sample at
// which it ends; 0 if it is not known.
void AddWsd(const LearningRateRecipe& recipe, const Location& where, int64_t end, Diagnostics& diagnostics) {
  const std::string path = "budget.learning_rate.wsd",
                    samples = end < 1 ? "SAMPLES" : absl::StrCat(std::max<int64_t>(1, end / 10));
  std::string lacks, write;
  std::vector<Edit> edits;
  if (!recipe.wsd_decay_samples && !recipe.wsd_style) {
    lacks = "`wsd`, the decay at the end";
    write = absl::StrCat("{decay_samples: ", samples, ", style: linear}");
    edits = {{path, write}};
    write = absl::StrCat("wsd: ", write);
  } else if (!recipe.wsd_style) {
    lacks = "`wsd.style`";
    write = "style: linear in `wsd`";
    edits = {{path + ".style", "linear"}};
  } else {
    lacks = "`wsd.decay_samples`";
    write = absl::StrCat("decay_samples: ", samples, " in `wsd`");
    edits = {{path + ".decay_samples", samples}};
  }
  const std::string tenth = recipe.wsd_decay_samples || end < 1 ? "" : ", a tenth of the training";
  if (end < 1 && !recipe.wsd_decay_samples) edits.clear();
  diagnostics
      .Error(DiagnosticKind::kWsdIncomplete, where, absl::StrCat("style wsd without ", lacks),
             absl::StrCat("add ", write, tenth,
                          recipe.wsd_style ? "" : absl::StrCat("; the styles are ", absl::StrJoin(kWsdStyles, ", "))))
      .edits = std::move(edits);
}

// Style wsd needs both of its settings; with another style they are only unused. `end`: as in AddWsd.
bool CheckWsd(const LearningRateRecipe& recipe, int64_t end, const Location& budget, Diagnostics& diagnostics) {
  const Location where = recipe.style.where.known() ? recipe.style.where : budget;
  if (!AllKnown(recipe.style)) return false;
  if (*recipe.style != "wsd") {
    if (recipe.wsd_decay_samples || recipe.wsd_style) {
      diagnostics.Warning(
          DiagnosticKind::kWsdUnused, recipe.wsd_style ? recipe.wsd_style->where : recipe.wsd_decay_samples->where,
          absl::StrCat("wsd settings have no effect with style ", *recipe.style), "use style: wsd, or remove them");
    }
    return true;
  }
  if (!recipe.wsd_decay_samples || !recipe.wsd_style) {
    AddWsd(recipe, where, end, diagnostics);
    return false;
  }
  bool fine = true;
  if (AllKnown(recipe.wsd_decay_samples) && **recipe.wsd_decay_samples < 1) {
    diagnostics.Error(DiagnosticKind::kWsdIncomplete, recipe.wsd_decay_samples->where,
                      absl::StrCat("wsd.decay_samples is ", **recipe.wsd_decay_samples), "use 1 or more");
    fine = false;
  }
  return CheckChoice(*recipe.wsd_style, kWsdStyles, "wsd style", where, diagnostics) && fine;
}

// A warmup given as a fraction may end between two samples: all digits show it.
std::string SamplesText(double count) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", count);
  return text;
}

// The values with which there is room for both.
std::string RoomForDecay(const LearningRateRecipe& recipe, const LearningRate& rate) {
  const std::string end = recipe.decay_samples ? "decay_samples" : "train_samples, where the decay ends,";
  if (!recipe.warmup_samples || rate.decay_samples < 1 || rate.warmup_samples < 0)
    return "decay_samples counts from the start of training: make it larger, or the warmup shorter";
  return absl::StrCat("decay_samples counts from the start of training, with the warmup: use warmup_samples up to ",
                      rate.decay_samples - 1, ", or ", end, " of ", SamplesText(std::floor(rate.warmup_samples) + 1),
                      " or more");
}

// decay_samples counts from the start of training, warmup included.
bool CheckRoomForDecay(const LearningRateRecipe& recipe, const LearningRate& rate, const Location& budget,
                       Diagnostics& diagnostics) {
  if (rate.decay_samples >= 1 && rate.warmup_samples >= 0 &&
      rate.warmup_samples < static_cast<double>(rate.decay_samples))
    return true;
  // Points at the setting that is most likely wrong: the last of these that the recipe has.
  Location where = budget;
  if (recipe.decay_samples) where = recipe.decay_samples->where;
  if (recipe.warmup_fraction) where = recipe.warmup_fraction->where;
  if (recipe.warmup_samples) where = recipe.warmup_samples->where;
  Diagnostic& problem =
      diagnostics.Error(DiagnosticKind::kWarmupTooLong, where,
                        absl::StrCat("a warmup of ", SamplesText(rate.warmup_samples),
                                     " samples does not end before decay_samples, ", rate.decay_samples),
                        RoomForDecay(recipe, rate));
  if (recipe.decay_samples && recipe.decay_samples->where.known() && recipe.warmup_samples) {
    problem.notes.push_back(
        {recipe.decay_samples->where, absl::StrCat("decay_samples is ", rate.decay_samples, " here")});
  }
  return false;
}

// `decay_known`: whether decay_samples is, which may be train_samples.
bool CheckLearningRate(const LearningRateRecipe& recipe, const LearningRate& rate, bool decay_known,
                       const Location& budget, Diagnostics& diagnostics) {
  constexpr DiagnosticKind kRange = DiagnosticKind::kLearningRateRange;
  bool fine = CheckChoice(recipe.style, kStyles, "learning-rate style", budget, diagnostics);
  fine &= CheckNotNegative(kRange, "min", recipe.min, budget, diagnostics);
  fine &= CheckOrder(kRange, "min", recipe.min, "peak", recipe.peak, budget, diagnostics);
  fine &= CheckOrder(kRange, "init", recipe.init, "peak", recipe.peak, budget, diagnostics);
  fine &= CheckWsd(recipe, decay_known ? rate.decay_samples : 0, budget, diagnostics);
  if (!AllKnown(recipe.warmup_samples, recipe.warmup_fraction)) return false;
  if (recipe.warmup_samples && recipe.warmup_fraction) {
    Diagnostic& problem = diagnostics.Error(DiagnosticKind::kWarmupTwice, recipe.warmup_fraction->where,
                                            "both warmup_fraction and warmup_samples are given", "keep one of the two");
    problem.notes.push_back({recipe.warmup_samples->where, "warmup_samples is here"});
    return false;  // which of the two is meant is not known, so neither is checked
  }
  if (!AllKnown(recipe.decay_samples) || !decay_known) return false;
  return CheckRoomForDecay(recipe, rate, budget, diagnostics) && fine;
}

bool CheckWeightDecay(const WeightDecayRecipe& recipe, const Location& budget, Diagnostics& diagnostics) {
  constexpr DiagnosticKind kRange = DiagnosticKind::kWeightDecayRange;
  bool fine = CheckChoice(recipe.style, kWeightDecayStyles, "weight-decay style", budget, diagnostics);
  fine &= CheckNotNegative(kRange, "start", recipe.start, budget, diagnostics);
  fine &= CheckOrder(kRange, "start", recipe.start, "end", recipe.end, budget, diagnostics);
  // One that falls is told already.
  if (fine && AllKnown(recipe.style, recipe.start, recipe.end) && *recipe.style == "constant" &&
      *recipe.start != *recipe.end) {
    diagnostics.Error(kRange, recipe.style.where.known() ? recipe.style.where : recipe.end.where,
                      absl::StrCat("constant weight decay from ", *recipe.start, " to ", *recipe.end),
                      "make start and end equal, or choose linear or cosine");
    fine = false;
  }
  return fine;
}

}  // namespace

LearningRate LearningRateOf(const BudgetRecipe& budget) {
  const LearningRateRecipe& recipe = budget.learning_rate;
  LearningRate rate = {.peak = *recipe.peak, .min = *recipe.min, .init = *recipe.init, .style = *recipe.style};
  rate.decay_samples = recipe.decay_samples ? **recipe.decay_samples : *budget.train_samples;
  if (recipe.warmup_samples) rate.warmup_samples = static_cast<double>(**recipe.warmup_samples);
  if (recipe.warmup_fraction) rate.warmup_samples = **recipe.warmup_fraction * static_cast<double>(rate.decay_samples);
  if (rate.style == "wsd") {
    rate.wsd_decay_samples = recipe.wsd_decay_samples ? **recipe.wsd_decay_samples : 0;
    rate.wsd_style = recipe.wsd_style ? **recipe.wsd_style : "";
  }
  return rate;
}

bool CheckRates(const BudgetRecipe& budget, Diagnostics& diagnostics) {
  const bool decay_known = budget.learning_rate.decay_samples || AllKnown(budget.train_samples);
  const bool rate =
      CheckLearningRate(budget.learning_rate, LearningRateOf(budget), decay_known, budget.where, diagnostics);
  return CheckWeightDecay(budget.weight_decay, budget.where, diagnostics) && rate;
}

}  // namespace planwright
