// How files of others hold the parameters of a model (docs/weights.md#forms), as lines of a dialect state it:
// docs/model/notation.md#tensors explains them. A parameter that no `tensor` line names is a tensor of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/expression.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/plan/table_text.h"

namespace planwright {

struct StatedNames {
  std::string ours, theirs;
  StatedLine line;
};

struct StatedTensor {
  std::string name;
  std::vector<std::string> parameters;
  int along = 0;
  std::optional<Expression> each;
  bool swap = false, stack = false;
  std::vector<Expression> shape;  // empty: it follows
  StatedLine line;
};

// One way in which files hold a model.
struct StoredForm {
  std::string text;  // of its lines `form`, joined with commas; empty: it has none
  std::vector<StatedNames> names;
  std::vector<StatedTensor> tensors;

  // The name in files of what has the name `ours` here. `encoder`: what {encoder} stands for.
  std::string NameOf(const std::string& ours, std::string_view encoder) const;
};

// The lines of one dialect.
class FormLines {
 public:
  // Takes a line that begins with one of these words, and adds what it states; false: it begins with another one, and
  // nothing was taken. What is wrong is in the reader, and then nothing is added.
  bool Take(LineReader& line);
  // Drops all lines `tensor` of before (`without tensor`).
  void DropTensors();

  bool empty() const { return always_.names.empty() && always_.tensors.empty() && groups_.empty(); }
  // Each choice of one alternative of each group, the first ones first. At least one form. Lines `names` of an
  // alternative come before those of no group.
  std::vector<StoredForm> Forms() const;
  // Of groups with so many choices that none would try them.
  static constexpr size_t kMostForms = 64;

 private:
  struct Group {
    std::string name;
    std::vector<StoredForm> alternatives;
  };
  void TakeForm(LineReader& line);
  StoredForm& Open();

  StoredForm always_;  // lines of no group
  std::vector<Group> groups_;
  int open_ = -1;  // the group whose last alternative takes lines; -1: none
};

}  // namespace planwright
