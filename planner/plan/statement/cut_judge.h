// Judges what is cut of the weights of a piece: along dims that may be cut, those of one compute together, and in the
// segments that its readers expect.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/problem_list.h"
#include "planner/plan/statement/rank_piece.h"

namespace planwright {

// The sizes of the parts of the dim that is cut, each of which is cut by itself.
std::vector<double> SegmentsOf(const StatedWeight& weight, const ModelNumbers& numbers);

class CutJudge {
 public:
  // Keeps references to all but the name.
  CutJudge(const std::string& name, const StatedPiece& piece, const ModelNumbers& numbers, ProblemList& problems)
      : name_(name), piece_(piece), numbers_(numbers), problems_(problems) {}

  // The computes in their order, each of which has operands.
  void Judge(const RankPiece::Compute& compute);

 private:
  struct CutSlot {
    const SignatureDim* dim = nullptr;
    std::vector<double> segments;
    std::string slot;
  };

  void Problem(const RankPiece::Compute& compute, std::string_view word, const std::string& text,
               std::vector<Location> from);
  // Of the weights in these slots.
  std::vector<Location> LinesOf(const std::vector<std::string>& slots) const;
  std::vector<CutSlot> CutsOf(const RankPiece::Compute& compute) const;
  std::vector<double> PassedParts(const RankPiece::Compute& compute, const SignatureDim& dim) const;
  std::vector<double> PartsOf(const RankPiece::Compute& compute, const std::vector<CutSlot>& cuts,
                              const SignatureDim& dim, double size, bool* more) const;
  void JudgeTogether(const RankPiece::Compute& compute, const std::vector<CutSlot>& cuts);
  void JudgeAdded(const RankPiece::Compute& compute, const std::vector<CutSlot>& cuts);
  void JudgeEndings(const RankPiece::Compute& compute);
  void JudgeInputs(const RankPiece::Compute& compute, const std::vector<CutSlot>& cuts);

  const std::string name_;
  const StatedPiece& piece_;
  const ModelNumbers& numbers_;
  ProblemList& problems_;
  struct Parts {
    std::vector<double> sizes;
    std::vector<Location> from;
  };
  std::map<std::string, Parts> parts_;  // by value: of its last dim
};

}  // namespace planwright
