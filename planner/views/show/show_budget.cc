#include <algorithm>
#include <cstdio>

#include "planner/base/paper/table.h"
#include "planner/plan/lr_schedule.h"
#include "planner/views/show/curves.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// All digits of a double: what `--at` shows can be compared with another program's numbers.
std::string Digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string ShortDigits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// Both curves over samples, with the segments of the learning rate below its chart.
std::string CurvesText(const Budget& budget, size_t width) {
  constexpr int kLines = 10;
  constexpr size_t kIndent = 12;  // room for the numbers of the y axis
  const int columns = static_cast<int>(std::clamp<size_t>(width - kIndent, 20, 100));
  if (TrainedSamples(budget) == 0) return "";
  std::vector<double> rates, decays;
  for (const RatePoint& point : RateCurve(budget, columns)) {
    rates.push_back(point.learning_rate);
    decays.push_back(point.weight_decay);
  }
  // A segment can end behind the training, whose curve is then cut.
  std::vector<std::string> names;
  std::vector<double> ends;
  for (const Segment& segment : budget.segments) {
    names.push_back(segment.kind);
    ends.push_back(
        std::min(1.0, static_cast<double>(segment.end_sample) / static_cast<double>(TrainedSamples(budget))));
  }
  const std::string last = WithCommas(TrainedSamples(budget)) + " samples";
  std::string text = "\nlearning rate\n" + LineChart(rates, kLines, kIndent) +
                     PartsRuler(names, ends, columns, kIndent) + std::string(kIndent - 1, ' ') + "0" +
                     std::string(columns - Width(last), ' ') + last + "\n";
  // A constant decay is a number and no chart.
  const double decay = budget.weight_decay.start;
  if (decay == budget.weight_decay.end) return text + "\nweight decay  " + ShortDigits(decay) + " throughout\n";
  return text + "\nweight decay\n" + LineChart(decays, kLines / 2, kIndent);
}

}  // namespace

std::string ShowBudget(const Plan& plan, const std::vector<int64_t>& at, size_t width) {
  const Budget& budget = plan.budget;
  std::string text = WithCommas(budget.train_samples) + " samples in " + WithCommas(budget.steps) + " steps of " +
                     WithCommas(budget.global_samples) + " (" + WithCommas(budget.microbatches) +
                     " microbatches; micro batch " + WithCommas(budget.micro_samples) + ", sequence " +
                     WithCommas(budget.sequence_length) + ")";
  text = Wrapped(text, width) + "\n";
  if (budget.samples_past_budget > 0) {
    text += "the last step is full: " + WithCommas(budget.samples_past_budget) + " samples past the budget\n";
  }
  Table segments({"learning rate", "first sample", "end sample", "from step", "rate at first", "rate at end"});
  for (const Segment& segment : budget.segments) {
    segments.Add({segment.kind, WithCommas(segment.first_sample), WithCommas(segment.end_sample),
                  WithCommas(StepOfSample(budget, segment.first_sample)),
                  ShortDigits(LearningRateAt(budget.learning_rate, static_cast<double>(segment.first_sample))),
                  ShortDigits(LearningRateAt(budget.learning_rate, static_cast<double>(segment.end_sample)))});
  }
  text += "\n" + segments.Text("", width) + CurvesText(budget, width);
  if (at.empty()) return text;
  Table points({"sample", "learning rate", "weight decay"});
  for (int64_t sample : at) {
    points.Add({WithCommas(sample), Digits(LearningRateAt(budget.learning_rate, static_cast<double>(sample))),
                Digits(WeightDecayAt(budget.weight_decay, static_cast<double>(sample)))});
  }
  return text + "\n" + points.Text();
}

nlohmann::ordered_json ShowBudgetJson(const Plan& plan, const std::vector<int64_t>& at) {
  using Json = nlohmann::ordered_json;
  const Budget& budget = plan.budget;
  Json json = {{"steps", budget.steps},
               {"train_samples", budget.train_samples},
               {"global_samples", budget.global_samples},
               {"micro_samples", budget.micro_samples},
               {"microbatches", budget.microbatches},
               {"sequence_length", budget.sequence_length},
               {"samples_past_budget", budget.samples_past_budget},
               {"segments", Json::array()}};
  for (const Segment& segment : budget.segments) {
    json["segments"].push_back(
        {{"kind", segment.kind}, {"first_sample", segment.first_sample}, {"end_sample", segment.end_sample}});
  }
  if (at.empty()) return json;
  json["at"] = Json::array();
  for (int64_t sample : at) {
    json["at"].push_back({{"sample", sample},
                          {"learning_rate", LearningRateAt(budget.learning_rate, static_cast<double>(sample))},
                          {"weight_decay", WeightDecayAt(budget.weight_decay, static_cast<double>(sample))}});
  }
  return json;
}

}  // namespace planwright
