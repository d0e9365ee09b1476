// Judges one piece of a statement in one case of what `when` may ask for: its weights, what its lines need, and what
// its computes read. Sizes are those of a module in which no two are equal by accident (prime_module.h).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/problem_list.h"
#include "planner/plan/statement/rank_piece.h"

namespace planwright {

// Tokens of a sample, a prime.
inline constexpr int64_t kPrimeSequence = 100069;

class PieceJudge {
 public:
  // Keeps references to all but the name.
  PieceJudge(const ModelStatement& statement, const std::string& name, const StatedPiece& piece,
             const ModelNumbers& numbers, ProblemList& problems);

  void Judge();

  const RankPiece& ranked() const { return ranked_; }
  bool Reads(const std::string& value) const { return reads_.contains(value); }

 private:
  void Problem(const StatedLine& line, std::string_view word, const std::string& text, std::string_view behind = "");
  // `what`: whose condition it is, for the message.
  void JudgeCondition(const std::optional<Expression>& when, const StatedLine& line, const std::string& what);
  void JudgeShared(const StatedShare& share);
  void JudgeWeight(const StatedWeight& weight);
  void JudgeCut(const StatedWeight& weight, double size);
  void JudgeNeed(const StatedNeed& need);
  void JudgeUses();
  void JudgeSlots();
  void JudgeAttributes(const RankPiece::Compute& compute);
  void JudgeSizes(const StatedCompute& compute);
  void JudgeSettings(const StatedCompute& compute);

  const ModelStatement& statement_;
  const StatedPiece& piece_;
  const std::string name_;
  const ModelNumbers& numbers_;
  ProblemList& problems_;
  const RankPiece ranked_;
  std::set<std::string> reads_;
};

}  // namespace planwright
