#include "planner/compile/batches/source_weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/source_rules.h"

namespace planwright {
namespace {

constexpr int kMostDigits = 6;      // after the point
constexpr size_t kMostListed = 12;  // weights of a help

struct Digits {
  std::string digits;  // without zeros at the ends; empty: the number is 0
  int64_t exponent = 0;
};

// The text has the form of a number of YAML: digits [ . digits ] [ e sign digits ] (recipe/scalar.cc).
Digits DigitsOf(std::string text) {
  Digits number;
  if (const size_t e = text.find_first_of("eE"); e != std::string::npos) {
    const size_t sign = text[e + 1] == '+' ? e + 2 : e + 1;
    // An exponent that no integer holds is out of every range: any large one stands for it.
    const auto [end, error] = std::from_chars(text.data() + sign, text.data() + text.size(), number.exponent);
    if (error != std::errc()) number.exponent = text[e + 1] == '-' ? -1'000'000 : 1'000'000;
    text.resize(e);
  }
  if (const size_t point = text.find('.'); point != std::string::npos) {
    number.exponent -= static_cast<int64_t>(text.size() - point - 1);
    text.erase(point, 1);
  }
  const size_t first = text.find_first_not_of('0');
  if (first == std::string::npos) return number;
  const size_t last = text.find_last_not_of('0');
  number.exponent += static_cast<int64_t>(text.size() - 1 - last);
  number.digits = text.substr(first, last + 1 - first);
  return number;
}

// In millionths; nothing if it is no whole number of them, or too large.
std::optional<int64_t> Millionths(const std::string& text) {
  const Digits number = DigitsOf(text);
  const int64_t zeros = number.exponent + kMostDigits;
  if (number.digits.empty() || zeros < 0) return std::nullopt;
  if (zeros + static_cast<int64_t>(number.digits.size()) > 18) return std::nullopt;
  const std::string all = number.digits + std::string(zeros, '0');
  int64_t value = 0;
  std::from_chars(all.data(), all.data() + all.size(), value);
  return value;
}

bool IsTooFine(const std::string& text) { return DigitsOf(text).exponent < -kMostDigits; }

// The weights with the sum kLongestPeriod that are nearest in proportion, each at least 1: what the rounding down left
// over goes to those that lost most.
std::vector<int64_t> NearestWeights(const std::vector<SourceRecipe>& sources) {
  std::vector<double> shares;
  for (const SourceRecipe& source : sources) shares.push_back(std::strtod(source.weight->text.c_str(), nullptr));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int64_t> weights;
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  for (double& share : shares) {
    share *= static_cast<double>(kLongestPeriod) / sum;
    weights.push_back(std::max<int64_t>(1, static_cast<int64_t>(share)));
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return shares[a] - static_cast<double>(weights[a]) > shares[b] - static_cast<double>(weights[b]);
  });
  int64_t left = kLongestPeriod - std::accumulate(weights.begin(), weights.end(), int64_t{0});
  for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++weights[order[i]];
  // Weights that were raised to 1 have made the sum too large: the largest ones pay.
  std::priority_queue<std::pair<int64_t, size_t>> largest;
  for (size_t i = 0; left < 0 && i < weights.size(); ++i) largest.emplace(weights[i], weights.size() - i);
  for (; left < 0; ++left) {
    const size_t at = largest.top().second;
    largest.pop();
    largest.emplace(--weights[weights.size() - at], at);
  }
  int64_t divisor = 0;
  for (int64_t weight : weights) divisor = std::gcd(divisor, weight);
  for (int64_t& weight : weights) weight /= divisor;
  return weights;
}

std::string NearestHelp(const std::vector<SourceRecipe>& sources) {
  const std::vector<int64_t> weights = NearestWeights(sources);
  const size_t shown = std::min(weights.size(), kMostListed);
  return absl::StrCat("the nearest weights that fit are ",
                      absl::StrJoin(weights.begin(), weights.begin() + shown, ", "),
                      shown < weights.size() ? ", ..." : "");
}

}  // namespace

std::vector<int64_t> ScaledWeights(const std::vector<SourceRecipe>& sources, Diagnostics& diagnostics) {
  std::vector<int64_t> weights;
  bool fine = true;
  std::string nearest;  // the same help for all
  for (const SourceRecipe& source : sources) {
    const std::optional<int64_t> weight = Millionths(source.weight->text);
    weights.push_back(weight.value_or(1));
    if (weight) continue;
    if (fine) nearest = NearestHelp(sources);
    fine = false;
    const bool too_fine = IsTooFine(source.weight->text);
    diagnostics.Error(DiagnosticKind::kSourceWeights, source.weight.where,
                      absl::StrCat("the weight ", source.weight->text,
                                   too_fine ? absl::StrCat(" has more than ", kMostDigits, " digits after the point")
                                            : std::string(" is too large")),
                      nearest);
  }
  if (!fine) return {};
  int64_t divisor = 0;
  for (int64_t weight : weights) divisor = std::gcd(divisor, weight);
  long double period = 0;  // 64 bits might not hold the sum of what is refused
  for (int64_t& weight : weights) period += static_cast<long double>(weight /= divisor);
  if (period <= static_cast<long double>(kLongestPeriod)) return weights;
  const SourceRecipe& first = sources.front();
  diagnostics.Error(DiagnosticKind::kSourceWeights, first.weight.where.known() ? first.weight.where : first.where,
                    absl::StrCat("as whole numbers without a common divisor the weights have the sum ",
                                 static_cast<int64_t>(std::min(period, 9e18L)), ", but the limit is ", kLongestPeriod,
                                 ": so many samples until the order of the sources repeats"),
                    NearestHelp(sources));
  return {};
}

}  // namespace planwright
