#include "planner/views/show/show_rates.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/lr_schedule.h"
#include "planner/plan/ranks_text.h"
#include "planner/plan/shard_map.h"

namespace planwright {
namespace {

std::string RateDigits(double rate) { return absl::StrFormat("%.6g", rate); }

// What a parameter is stepped with where the schedule has its peak, and its weight decay its end.
StepRates PeakRates(const Plan& plan, const Parameter& parameter) {
  StepRates rates = {plan.budget.learning_rate.peak, plan.budget.weight_decay.end};
  if (parameter.part >= 0) {
    const RatePart& part = plan.optimizer.parts.at(static_cast<size_t>(parameter.part));
    rates = {part.learning_rate, part.weight_decay};
  }
  if (!parameter.decay) rates.weight_decay = 0;
  return rates;
}

int64_t AllElementsOf(const Parameter& parameter) {
  return std::max<int64_t>(parameter.experts, 1) * ElementsOf(parameter.shape);
}

std::string MatchOf(const Plan& plan, int part) {
  return part < 0 ? "(in no part)" : Printable(plan.optimizer.parts.at(static_cast<size_t>(part)).match);
}

std::string PartsTable(const Plan& plan, size_t width) {
  const int parts = static_cast<int>(plan.optimizer.parts.size());
  std::map<int, std::pair<int64_t, int64_t>> held;  // by part: parameters, elements
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      if (!parameter.trained) continue;
      held[parameter.part].first += 1;
      held[parameter.part].second += AllElementsOf(parameter);
    }
  }
  Table table({"part", "tensors", "elements", "peak learning rate", "weight decay at the end", "match"});
  for (int part = 0; part <= parts; ++part) {
    const bool none = part == parts;
    const auto& [tensors, elements] = held[none ? -1 : part];
    if (none && tensors == 0) continue;
    const StepRates rates = PeakRates(plan, {.decay = true, .part = none ? -1 : part});
    table.Add({none ? "" : absl::StrCat(part), WithCommas(tensors), WithCommas(elements),
               RateDigits(rates.learning_rate), RateDigits(rates.weight_decay), MatchOf(plan, none ? -1 : part)});
  }
  return table.Text("  ", width);
}

// A published name, cut at the first word that is a number: the words before it and behind it. No number: -1.
struct CutName {
  std::string before, behind;
  int number = -1;
};

CutName Cut(const std::string& name) {
  const std::vector<std::string> words = absl::StrSplit(name, '.');
  for (size_t i = 0; i < words.size(); ++i) {
    int number = -1;
    if (words[i].size() > 6 || words[i].find_first_not_of("0123456789") != std::string::npos ||
        !absl::SimpleAtoi(words[i], &number))
      continue;
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
    return {absl::StrJoin(words.begin(), at, "."), absl::StrJoin(at + 1, words.end(), "."), number};
  }
  return {name, "", -1};
}

// Parameters whose names differ in that number alone, and that are stepped in one way.
struct Line {
  const Parameter* first = nullptr;
  CutName name;
  std::vector<int> numbers;
};

// "0-3,7": a name with them has no spaces, at which a line could break.
std::string RunsText(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", RanksText(numbers[i], numbers[last] - numbers[i] + 1));
    i = last + 1;
  }
  return text;
}

std::string NameOf(const Line& line) {
  if (line.numbers.size() < 2) return line.first->file_name;
  std::vector<std::string> words;
  if (!line.name.before.empty()) words.push_back(line.name.before);
  words.push_back(absl::StrCat("{", RunsText(line.numbers), "}"));
  if (!line.name.behind.empty()) words.push_back(line.name.behind);
  return absl::StrJoin(words, ".");
}

std::string ParametersTable(const Plan& plan, const Module& module, size_t width) {
  std::vector<Line> lines;
  std::map<std::string, size_t> known;
  for (const Parameter& parameter : module.parameters) {
    if (!parameter.trained) continue;
    CutName name = Cut(parameter.file_name);
    const std::string key = absl::StrCat(name.before, "\n", name.behind, "\n", name.number < 0 ? "" : "number", "\n",
                                         parameter.part, parameter.decay ? " decays" : "");
    const auto [found, fresh] = known.try_emplace(key, lines.size());
    if (fresh) lines.push_back({&parameter, std::move(name), {}});
    lines[found->second].numbers.push_back(Cut(parameter.file_name).number);
  }
  Table table({"part", "peak learning rate", "weight decay at the end", "published name"});
  for (const Line& line : lines) {
    const StepRates rates = PeakRates(plan, *line.first);
    table.Add({line.first->part < 0 ? "" : absl::StrCat(line.first->part), RateDigits(rates.learning_rate),
               line.first->decay ? RateDigits(rates.weight_decay) : "none", Printable(NameOf(line))});
  }
  return table.Text("  ", width);
}

}  // namespace

std::string RatesText(const Plan& plan, size_t width) {
  if (plan.optimizer.parts.empty()) return "";
  std::string text = "rates by part\n" + PartsTable(plan, width) + "\n";
  for (const Module& module : plan.modules) {
    const bool trained = std::any_of(module.parameters.begin(), module.parameters.end(),
                                     [](const Parameter& parameter) { return parameter.trained; });
    if (trained) text += module.name + ": rates of its tensors\n" + ParametersTable(plan, module, width) + "\n";
  }
  return text;
}

nlohmann::ordered_json RatesJson(const Plan& plan, const Parameter& parameter) {
  using Json = nlohmann::ordered_json;
  const StepRates rates = PeakRates(plan, parameter);
  const auto stepped = [&](double rate) { return parameter.trained ? Json(rate) : Json(); };
  return {{"part", parameter.part < 0 ? Json() : Json(MatchOf(plan, parameter.part))},
          {"learning_rate", stepped(rates.learning_rate)},
          {"weight_decay", stepped(rates.weight_decay)}};
}

}  // namespace planwright
