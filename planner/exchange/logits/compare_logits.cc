#include "planner/exchange/logits/compare_logits.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "planner/base/text/status_macros.h"
#include "planner/base/text/text.h"
#include "planner/wire/records/probe_format.h"

namespace planwright {
namespace {

using Logits = std::vector<double>;

int64_t TopOf(const Logits& logits) { return std::max_element(logits.begin(), logits.end()) - logits.begin(); }

// The logarithm of the sum of the exponentials.
double LogSum(const Logits& logits) {
  const double most = logits[TopOf(logits)];
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

double SquaresAboutMean(const Logits& logits) {
  double mean = 0, squares = 0;
  for (const double logit : logits) mean += logit;
  mean /= static_cast<double>(logits.size());
  for (const double logit : logits) squares += (logit - mean) * (logit - mean);
  return squares;
}

// Of an even number the larger one of the two in the middle.
double MedianOf(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<int64_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

// Our logits of a run, in a file.
class OurLogits {
 public:
  static absl::StatusOr<OurLogits> Open(const std::string& path, const ReferenceLogits& theirs) {
    OurLogits result;
    ABSL_ASSIGN_OR_RETURN(result.file_, SafetensorsFile::Open(path));
    ABSL_ASSIGN_OR_RETURN(result.logits_, result.file_.Find(Cat("outputs/", kLogitsProbe)));
    const std::vector<int64_t>& shape = result.logits_.shape;
    if (shape.size() != 3 || shape[0] < theirs.sequences() || shape[1] < theirs.longest() ||
        shape[2] != theirs.vocabulary())
      return absl::DataLossError(Cat(path, " has not the logits of these tokens"));
    return result;
  }

  absl::StatusOr<Logits> Row(int64_t sequence, int64_t position) const {
    const int64_t bytes = logits_.bytes / (logits_.shape[0] * logits_.shape[1]);
    std::string row(static_cast<size_t>(bytes), '\0');
    const int64_t offset = logits_.offset + (sequence * logits_.shape[1] + position) * bytes;
    ABSL_RETURN_IF_ERROR(file_.file().Read(offset, std::as_writable_bytes(std::span(row))));
    return AsDoubles(logits_.dtype, row);
  }

 private:
  SafetensorsFile file_;
  StoredTensor logits_;
};

// Adds up positions. What it adds up is absolute until Finish.
class Comparison {
 public:
  Comparison(double tolerance, int64_t vocabulary) {
    result_.tolerance = tolerance, result_.vocabulary = vocabulary;
    result_.worst.difference = -1;
  }

  // `next`: the token that follows; -1: none.
  void Add(LogitsPosition at, int64_t next, const Logits& ours, const Logits& theirs) {
    if (!result_.finite) return;
    double squares = 0, widest = -1;
    for (size_t id = 0; id < theirs.size(); ++id) {
      const double difference = std::abs(ours[id] - theirs[id]);
      if (!std::isfinite(ours[id])) {
        result_.finite = false;
        result_.worst = at;
        result_.worst.widest = {static_cast<int64_t>(id), ours[id], theirs[id]};
        return;
      }
      squares += difference * difference;
      result_.mean += difference;
      if (difference > widest) widest = difference, at.widest = {static_cast<int64_t>(id), ours[id], theirs[id]};
    }
    result_.largest = std::max(result_.largest, widest);
    at.difference = std::sqrt(squares / static_cast<double>(theirs.size()));
    differences_.push_back(at.difference);
    if (at.position == 0) begins_.push_back(at.difference);
    result_.spread += SquaresAboutMean(theirs);
    AddLikely(at, next, ours, theirs);
    if (at.difference > result_.worst.difference) result_.worst = at;
  }

  LogitsComparison Finish() {
    result_.positions = static_cast<int64_t>(differences_.size());
    if (!result_.finite) return result_;
    const double positions = static_cast<double>(result_.positions);
    const double numbers = positions * static_cast<double>(result_.vocabulary);
    result_.spread = std::sqrt(result_.spread / numbers);
    // Logits that are all the same have no spread; then differences are absolute.
    const double unit = result_.spread > 0 ? result_.spread : 1;
    result_.largest /= unit, result_.mean /= numbers * unit;
    result_.worst.difference /= unit;
    result_.difference = MedianOf(differences_) / unit;
    result_.at_begin = MedianOf(begins_) / unit;
    const double most = kOfOnePosition * result_.tolerance * unit;
    for (const double difference : differences_) result_.beyond += difference > most;
    result_.kl_mean /= positions;
    if (followed_ > 0) result_.ours_loss = ours_loss_ / followed_, result_.theirs_loss = theirs_loss_ / followed_;
    return result_;
  }

 private:
  void AddLikely(LogitsPosition& at, int64_t next, const Logits& ours, const Logits& theirs) {
    const auto pair = [&](int64_t id) { return LogitPair{id, ours[id], theirs[id]}; };
    at.ours_top = pair(TopOf(ours)), at.theirs_top = pair(TopOf(theirs));
    result_.same_top += at.ours_top.id == at.theirs_top.id;
    const double ours_sum = LogSum(ours), theirs_sum = LogSum(theirs);
    double divergence = 0;
    for (size_t id = 0; id < theirs.size(); ++id) {
      const double likely = theirs[id] - theirs_sum;
      divergence += std::exp(likely) * (likely - (ours[id] - ours_sum));
    }
    divergence = std::max(0.0, divergence);  // rounding
    result_.kl_mean += divergence;
    result_.kl_largest = std::max(result_.kl_largest, divergence);
    if (next < 0) return;
    followed_ += 1;
    ours_loss_ += ours_sum - ours[next], theirs_loss_ += theirs_sum - theirs[next];
  }

  LogitsComparison result_;
  std::vector<double> differences_, begins_;  // of each position, and of those that begin a sequence; absolute
  double followed_ = 0, ours_loss_ = 0, theirs_loss_ = 0;
};

double ToleranceOf(ComputedIn computed) {
  switch (computed) {
    case ComputedIn::kFp64: return 1e-9;
    case ComputedIn::kFp32: return 1e-4;
    case ComputedIn::kFp16: return 1e-2;
    case ComputedIn::kBf16: break;
  }
  return 5e-2;
}

}  // namespace

double LogitsTolerance(ComputedIn ours, ComputedIn theirs) { return ToleranceOf(std::max(ours, theirs)); }

absl::StatusOr<LogitsComparison> CompareLogits(const ReferenceLogits& theirs, const std::string& ours,
                                               double tolerance) {
  ABSL_ASSIGN_OR_RETURN(const OurLogits file, OurLogits::Open(ours, theirs));
  Comparison comparison(tolerance, theirs.vocabulary());
  for (int64_t sequence = 0; sequence < theirs.sequences(); ++sequence) {
    const std::vector<int64_t>& tokens = theirs.tokens(sequence);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto position = static_cast<int64_t>(i);
      ABSL_ASSIGN_OR_RETURN(const Logits our_row, file.Row(sequence, position));
      ABSL_ASSIGN_OR_RETURN(const Logits their_row, theirs.Row(sequence, position));
      comparison.Add({.sequence = sequence, .position = position, .token = tokens[i]},
                     i + 1 < tokens.size() ? tokens[i + 1] : -1, our_row, their_row);
    }
  }
  return comparison.Finish();
}

}  // namespace planwright
