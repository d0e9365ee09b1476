// V8: the counts of samples, steps and microbatches agree; the learning-rate segments cover the budget and are what
// the formula gives, in each part of rates too; each stage's order of forwards and backwards is 1F1B. Formulas:
// docs/training/budget.md#learning-rate, docs/training/budget.md#steps, docs/layouts/pipeline.md#1f1b. Evaluations
// stand between steps, have whole rounds, and a checkpoint each where one of them may be kept as the best.
//
// Not here: that programs follow the schedule (V11, verify_programs.cc), and that all microbatches of the batch are
// trained on (V5, verify_microbatches.cc).

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/plan/lr_schedule.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

class BudgetRules {
 public:
  BudgetRules(const Plan& plan, std::vector<Violation>& violations)
      : plan_(plan), budget_(plan.budget), violations_(violations) {
    for (size_t i = 0; i < plan.origins.size(); ++i) {
      if (plan.origins[i].what == "budget") origin_ = static_cast<int>(i);
    }
  }

  void Check() {
    const bool positive = budget_.global_samples > 0 && budget_.micro_samples > 0 && budget_.microbatches > 0 &&
                          budget_.steps > 0 && budget_.train_samples > 0 && budget_.sequence_length > 0;
    if (!positive)
      return Require(false, "a sample count, the sequence length, the microbatches or the steps are not positive");
    CheckCounts();
    if (CheckStyles()) {
      CheckSegments();
      CheckWeightDecay();
      CheckRateParts();
    }
    CheckSchedule();
    CheckEvaluation();
  }

 private:
  // Reports `message` unless the condition holds. The violation points at `module`, or at the budget if it is null.
  void Require(bool holds, string message, const Module* module = nullptr) {
    if (!holds) violations_.push_back({"V8", std::move(message), module ? module->origin : origin_});
  }

  // docs/training/budget.md#steps.
  void CheckCounts() {
    Require(budget_.global_samples % budget_.microbatches == 0,
            absl::StrCat(budget_.global_samples, " samples a step do not divide into ", budget_.microbatches,
                         " microbatches"));
    for (const Module& module : plan_.modules) {
      if (!module.carries_loss) continue;
      const int64_t samples = budget_.microbatches * budget_.micro_samples * module.grid.dp;
      Require(samples == budget_.global_samples,
              absl::StrCat(budget_.microbatches, " microbatches of ", budget_.micro_samples, " samples on ",
                           module.grid.dp, " lanes are ", samples, " samples, not ", budget_.global_samples));
    }
    Require(budget_.block_samples * budget_.microbatches == budget_.global_samples,
            absl::StrCat("a microbatch has ", budget_.block_samples, " samples, and ", budget_.microbatches,
                         " of them are not ", budget_.global_samples));
    const int64_t steps = (budget_.train_samples + budget_.global_samples - 1) / budget_.global_samples;
    Require(budget_.steps == steps,
            absl::StrCat(budget_.steps, " steps, but ", steps, " full batches cover the budget"));
    if (budget_.steps != steps) return;
    Require(budget_.samples_past_budget == steps * budget_.global_samples - budget_.train_samples,
            absl::StrCat("the last step has ", budget_.samples_past_budget, " samples past the budget, not ",
                         steps * budget_.global_samples - budget_.train_samples));
  }

  // docs/training/evaluation.md#rounds.
  void CheckEvaluation() {
    const EvaluationPlan& evaluation = plan_.evaluation;
    const CheckpointPlan& checkpoint = plan_.checkpoint;
    if (evaluation.empty()) {
      for (const Role& role : plan_.roles) {
        Require(role.evaluate.empty() && role.score.empty(),
                absl::StrCat("role ", role.name, " has lists of an evaluation, but there is none"));
      }
      return Require(checkpoint.keep_best.empty(), "a best checkpoint is kept, but nothing is evaluated");
    }
    Require(evaluation.every_samples % budget_.global_samples == 0,
            absl::StrCat("evaluations every ", evaluation.every_samples, " samples are not between steps of ",
                         budget_.global_samples));
    for (const EvaluationSet& set : evaluation.sets) {
      if (budget_.block_samples < 1) break;  // CheckCounts
      const int64_t rounds = (set.samples + budget_.block_samples - 1) / budget_.block_samples;
      Require(set.rounds == rounds,
              absl::StrCat("evaluation set ", set.name, " has ", set.rounds, " rounds, but ", rounds, " blocks of ",
                           budget_.block_samples, " cover its ", set.samples, " samples"));
    }
    if (checkpoint.keep_best.empty()) return;
    const auto named = [&](const EvaluationSet& set) { return set.name == checkpoint.keep_best; };
    Require(std::any_of(evaluation.sets.begin(), evaluation.sets.end(), named),
            absl::StrCat("the best checkpoint is that of the evaluation set ", checkpoint.keep_best,
                         ", which does not exist"));
    Require(
        checkpoint.every_steps > 0 && evaluation.every_samples / budget_.global_samples % checkpoint.every_steps == 0,
        "the best checkpoint is kept, but not each evaluation has one");
  }

  // Whether the formulas can be evaluated.
  bool CheckStyles() {
    static const std::set<string> kStyles = {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
    static const std::set<string> kTails = {"linear", "cosine", "exponential", "minus_sqrt"};
    static const std::set<string> kDecayStyles = {"constant", "linear", "cosine"};
    const LearningRate& rate = budget_.learning_rate;
    const bool style = kStyles.contains(rate.style), tail = rate.style != "wsd" || kTails.contains(rate.wsd_style),
               decay = kDecayStyles.contains(budget_.weight_decay.style);
    Require(style, absl::StrCat("the learning rate has the unknown style ", rate.style));
    Require(tail, absl::StrCat("the wsd decay has the unknown style ", rate.wsd_style));
    Require(decay, absl::StrCat("the weight decay has the unknown style ", budget_.weight_decay.style));
    return style && tail && decay;
  }

  // The segments of the learning-rate curve follow one another without a gap, from sample 0 to the end of the budget.
  void CheckSegments() {
    static const std::map<string, int> kOrder = {{"warmup", 0}, {"stable", 1}, {"decay", 2}, {"end", 3}};
    int64_t reached = 0;
    int last = -1;
    for (const Segment& segment : budget_.segments) {
      const string name = absl::StrCat("learning-rate segment ", segment.kind, " of samples ", segment.first_sample,
                                       " to ", segment.end_sample);
      Require(segment.first_sample == reached && segment.end_sample > segment.first_sample,
              absl::StrCat(name, " is empty or does not start at ", reached, ", where the segment before it ends"));
      reached = segment.end_sample;
      auto order = kOrder.find(segment.kind);
      if (order == kOrder.end() || order->second <= last) {
        Require(false, absl::StrCat(name, " is of an unknown kind or out of order"));
        continue;
      }
      last = order->second;
      CheckCurve(segment, name);
    }
    Require(reached == budget_.train_samples,
            absl::StrCat("the learning-rate segments end at sample ", reached, " of ", budget_.train_samples));
  }

  // Evaluates the formula (docs/training/budget.md#learning-rate) at the segment's start, middle and end. Its values
  // there must be those of a segment of this kind. Boundaries are whole samples and the warmup may end between two
  // samples, so comparisons with warmup_samples allow one sample.
  void CheckCurve(const Segment& segment, const string& name) {
    const LearningRate& rate = budget_.learning_rate;
    const double first = static_cast<double>(segment.first_sample), end = static_cast<double>(segment.end_sample),
                 middle = (first + end) / 2;
    const double slack = 1e-9 * std::max(std::abs(rate.peak), std::abs(rate.init));  // for rounding
    const auto at = [&](double sample) { return LearningRateAt(rate, sample); };
    const auto equals = [&](double sample, double value) { return std::abs(at(sample) - value) <= slack; };
    bool fits = false;
    if (segment.kind == "warmup") {  // linear from init to peak
      fits = equals(0, rate.init) && rate.warmup_samples > first && rate.warmup_samples > end - 1 &&
             equals(middle < rate.warmup_samples ? middle : first,
                    rate.init + (rate.peak - rate.init) * (middle < rate.warmup_samples ? middle : first) /
                                    rate.warmup_samples);
      fits = fits && (end < rate.warmup_samples || equals(rate.warmup_samples, rate.peak));
    } else if (segment.kind == "stable") {
      fits = equals(first, rate.peak) || rate.warmup_samples > first;
      fits = fits && equals(middle, rate.peak) && equals(end, rate.peak) && first >= rate.warmup_samples - 1;
    } else if (segment.kind == "decay") {
      fits = at(first) >= at(middle) - slack && at(middle) >= at(end) - slack &&
             at(end) >= std::min(rate.min, rate.peak) - slack;
      fits = fits && rate.style != "constant" &&
             (rate.peak == rate.min || at(end) < rate.peak || rate.style == "inverse_sqrt") &&
             end <= static_cast<double>(rate.decay_samples) && first >= rate.warmup_samples - 1;
    } else {
      fits = equals(end, rate.min) && equals(middle, rate.min) && first >= static_cast<double>(rate.decay_samples);
    }
    Require(fits, absl::StrCat(name, " does not match the formula"));
  }

  // docs/training/budget.md#weight-decay.
  void CheckWeightDecay() {
    const WeightDecay& decay = budget_.weight_decay;
    Require(decay.samples == budget_.train_samples, absl::StrCat("the weight decay ends at sample ", decay.samples,
                                                                 ", but the training at ", budget_.train_samples));
    if (decay.samples != budget_.train_samples) return;
    const double slack = 1e-9 * std::max(std::abs(decay.start), std::abs(decay.end));
    const bool ends = std::abs(WeightDecayAt(decay, static_cast<double>(decay.samples)) - decay.end) <= slack;
    const bool starts = std::abs(WeightDecayAt(decay, 0) - decay.start) <= slack;
    Require(ends && starts, "the weight decay does not run from its start to its end");
  }

  // docs/training/step.md#rates-by-part. The rates that a part is stepped with are those of the same formulas with its
  // own peak and its own end, and everything else in the same ratio, wherever a segment begins, is halfway, or ends.
  void CheckRateParts() {
    for (size_t i = 0; i < plan_.optimizer.parts.size(); ++i) {
      const RatePart& part = plan_.optimizer.parts[i];
      const string name = absl::StrCat("the rates of part ", part.match);
      LearningRate own = budget_.learning_rate;
      WeightDecay own_decay = budget_.weight_decay;
      if (own.peak == 0 && part.learning_rate > 0)
        return Require(false, absl::StrCat(name, " follow a learning rate whose peak is 0"));
      const double factor = own.peak > 0 ? part.learning_rate / own.peak : 0,
                   decay_factor = own_decay.end > 0 ? part.weight_decay / own_decay.end : 1;
      own.min *= factor, own.init *= factor, own.peak = part.learning_rate;
      own_decay.start = own_decay.start == own_decay.end ? part.weight_decay : own_decay.start * decay_factor;
      own_decay.end = part.weight_decay;
      bool fits = true;
      for (const Segment& segment : budget_.segments) {
        const double first = static_cast<double>(segment.first_sample), end = static_cast<double>(segment.end_sample);
        for (const double sample : {first, (first + end) / 2, end}) {
          const StepRates rates = RatesAt(plan_, static_cast<int>(i), sample);
          fits = fits && std::abs(rates.learning_rate - LearningRateAt(own, sample)) <= 1e-9 * own.peak &&
                 std::abs(rates.weight_decay - WeightDecayAt(own_decay, sample)) <= 1e-9 * own_decay.end;
        }
      }
      Require(fits, absl::StrCat(name, " do not match the formula"));
    }
  }

  // Numbers the stages of all modules along the longest path of bridges: a module starts after the last stage of each
  // module that feeds it. Colocated modules share a number (docs/layouts/pipeline.md#stages-of-several-modules). Each
  // round moves modules back until nothing changes; if that takes more rounds than modules, there is a circle, and the
  // result is false.
  bool NumberStages(std::vector<int>& first, int& total) {
    const auto index_of = [&](const string& name) { return plan_.FindModule(name) - plan_.modules.data(); };
    first.assign(plan_.modules.size(), 0);
    for (size_t round = 0; round <= plan_.modules.size(); ++round) {
      bool moved = false;
      for (const Bridge& bridge : plan_.bridges) {
        const auto from = static_cast<size_t>(index_of(bridge.from)), to = static_cast<size_t>(index_of(bridge.to));
        const int stage = first[from] + (bridge.kind == "colocated" ? 0 : plan_.modules[from].grid.pp);
        if (stage > first[to]) first[to] = stage, moved = true;
      }
      if (!moved) {
        for (size_t i = 0; i < first.size(); ++i) total = std::max(total, first[i] + plan_.modules[i].grid.pp);
        return true;
      }
    }
    return false;
  }

  // Each stage has one schedule, and it is 1F1B with the warmup that follows from the number of stages after it.
  void CheckSchedule() {
    std::vector<int> first;
    int total = 0;
    if (!NumberStages(first, total)) return Require(false, "modules feed each other in a circle");
    std::set<std::pair<string, int>> seen;
    for (const StageSchedule& stage : plan_.schedule) {
      const string name = absl::StrCat("stage ", stage.stage, " of ", stage.module);
      const Module* module = plan_.FindModule(stage.module);
      if (!module || stage.stage < 0 || stage.stage >= module->grid.pp) {
        Require(false, absl::StrCat("the schedule has ", name, ", which does not exist"), module);
        continue;
      }
      Require(seen.emplace(stage.module, stage.stage).second, absl::StrCat("the schedule has ", name, " twice"),
              module);
      const int number = first[static_cast<size_t>(module - plan_.modules.data())] + stage.stage;
      const int64_t warmup = std::min<int64_t>(total - number - 1, budget_.microbatches);
      Require(stage.warmup == warmup,
              absl::StrCat(name, " runs ", stage.warmup, " forwards before its first backward, not ", warmup), module);
      Require(OrderFits(stage, warmup),
              absl::StrCat(name, " of ", stage.order.size(), " actions is not 1F1B of ", budget_.microbatches,
                           " microbatches"),
              module);
    }
    for (const Module& module : plan_.modules) {
      for (int stage = 0; stage < module.grid.pp; ++stage) {
        Require(seen.contains({module.name, stage}),
                absl::StrCat("the schedule lacks stage ", stage, " of ", module.name), &module);
      }
    }
  }

  // A stage has no backward if it trains nothing and no stage before it needs a gradient. Whether a stage that needs a
  // backward has one is V5's (verify_layers.cc).
  bool HasForwardsAlone(const StageSchedule& stage) const {
    const bool backward =
        std::any_of(stage.order.begin(), stage.order.end(), [](const string& action) { return action[0] == 'B'; });
    return !backward && static_cast<int64_t>(stage.order.size()) == budget_.microbatches;
  }

  // 1F1B: `warmup` forwards, then one forward and one backward in turn, then the backwards that are left
  // (docs/layouts/pipeline.md#1f1b).
  bool OrderFits(const StageSchedule& stage, int64_t warmup) const {
    const int64_t microbatches = budget_.microbatches;
    if (HasForwardsAlone(stage)) {
      for (int64_t m = 0; m < microbatches; ++m) {
        if (stage.order[static_cast<size_t>(m)] != absl::StrCat("F", m)) return false;
      }
      return true;
    }
    if (static_cast<int64_t>(stage.order.size()) != 2 * microbatches) return false;
    int64_t forward = 0, backward = 0;
    for (const string& action : stage.order) {
      const bool forwards =
          forward < warmup || (forward < microbatches && forward - backward <= warmup && forward == backward + warmup);
      if (action != (forwards ? absl::StrCat("F", forward) : absl::StrCat("B", backward))) return false;
      ++(forwards ? forward : backward);
    }
    return true;
  }

  const Plan& plan_;
  const Budget& budget_;
  std::vector<Violation>& violations_;
  int origin_ = -1;
};

}  // namespace

std::vector<Violation> VerifyBudget(const Plan& plan) {
  std::vector<Violation> violations;
  BudgetRules(plan, violations).Check();
  return violations;
}

}  // namespace planwright
