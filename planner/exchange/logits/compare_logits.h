// How far logits of ours are from those of another program, for the same tokens and weights
// (docs/training/evaluation.md#against-another-program).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/exchange/logits/reference_logits.h"

namespace planwright {

// How far logits of one model may be apart that two programs computed, at the median position and relative to their
// spread: the coarser of both precisions decides.
double LogitsTolerance(ComputedIn ours, ComputedIn theirs);
// Any position may be so many times further apart: rounding chooses other experts for some tokens.
inline constexpr double kOfOnePosition = 20;

// A logit of both.
struct LogitPair {
  int64_t id = -1;  // of the token that it is of
  double ours = 0, theirs = 0;
};

// A position of a sequence, and what is known of it.
struct LogitsPosition {
  int64_t sequence = 0, position = 0, token = 0;
  double difference = 0;           // as those of LogitsComparison
  LogitPair widest;                // the logit that differs most
  LogitPair ours_top, theirs_top;  // the most likely token of each
};

// Differences are relative to the spread. That of a position is the root mean square over its logits.
struct LogitsComparison {
  double tolerance = 0;
  int64_t positions = 0, vocabulary = 0;
  // The standard deviation of their logits: of a position about its mean, over all positions.
  double spread = 0;
  double largest = 0, mean = 0;  // of single logits, absolute
  // Of the median position, and of the median of those that begin a sequence. A beginning has no earlier token, so no
  // attention to others and no position counts in it.
  double difference = 0, at_begin = 0;
  int64_t beyond = 0;                  // positions whose difference is above kOfOnePosition times the tolerance
  int64_t same_top = 0;                // positions at which both have the same most likely token
  double kl_mean = 0, kl_largest = 0;  // KL(theirs || ours) of a position, in nats
  std::optional<double> ours_loss, theirs_loss;  // cross entropy of the next tokens; none: no sequence has two tokens
  LogitsPosition worst;
  bool finite = true;  // false: one of ours is not, at `worst`; then nothing else is known

  bool good() const { return finite && difference <= tolerance && beyond == 0; }
};

// `ours`: a safetensors file with outputs/logits [samples, positions, vocabulary], of which the first samples are the
// sequences. DataLoss if it has others; errors of reading both files.
absl::StatusOr<LogitsComparison> CompareLogits(const ReferenceLogits& theirs, const std::string& ours,
                                               double tolerance);

}  // namespace planwright
