// How files of others hold the parameters of a model (docs/weights.md#forms), as lines of a dialect state it:
//
//   names BEGIN -> BEGIN      names of files have the second beginning where ours have the first; the first line that
//                             fits counts. {layer}, {block} and {tap} stand for a number, {encoder} for what names of
//                             an encoder begin with
//   tensor DISK = PARAM + PARAM ... [along DIM [each FORMULA]] [swap] [stack] [shape [SIZES]]
//                             a tensor of a file, and the parameters of one piece that it holds. Each PARAM is the name
//                             of a weight in its piece, or its whole published name. DISK is a whole name, to which the
//                             lines `names` apply. For each expert the parameters make a matrix: `each` groups (one
//                             without it), of which group g has the g-th part of each parameter along DIM (0 without
//                             it). `swap` exchanges its last two dims, `stack` puts the matrices of all experts one
//                             behind the other in a new dim 0, and `shape` gives the same elements another shape
//   form GROUP: TEXT          begins an alternative of a group: the lines `names` and `tensor` up to the next `form`,
//   or
//                             to the end of the dialect. Files hold one alternative of each group
//
// A parameter that no `tensor` line names is a tensor of its own.
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
