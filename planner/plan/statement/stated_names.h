// The names that the formulas of a statement use: each is a number that its place knows.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/problem_list.h"

namespace planwright {

// The numbers of a statement, and which layers must be there for them to have a value.
class StatedNames {
 public:
  explicit StatedNames(const ModelStatement& statement);

  // Tells names of a formula that are none. `piece`: of layers of this kind; 0: of a part that each module has.
  // `others`: names that are numbers here, beside those of the model.
  void Check(const Expression& formula, const StatedLine& line, char piece, const std::set<std::string>& others,
             ProblemList& problems) const;
  // As Check, of one name.
  void CheckName(const std::string& name, const StatedLine& line, char piece, const std::set<std::string>& others,
                 ProblemList& problems) const;
  // Whether a module that has this piece has the number.
  bool Knows(const std::string& name, char piece) const;
  // What computes of such layers have beside: `tap`, the number of a layer among those that take carries.
  std::set<std::string> NumbersOfPiece(char piece) const;
  const StatedConstant* FindConstant(const std::string& name) const;
  std::vector<std::string> Constants() const;

 private:
  const ModelStatement& statement_;
  std::map<std::string, std::set<char>> numbers_;  // by name: the kinds of layers without which it has no value
};

// Adds names that are there twice or that are no numbers: in the lines before pieces, and in those of a piece.
void CheckModelNames(const ModelStatement& statement, const StatedNames& names, ProblemList& problems);
void CheckPieceNames(const StatedPiece& piece, char kind, const StatedNames& names, ProblemList& problems);

}  // namespace planwright
