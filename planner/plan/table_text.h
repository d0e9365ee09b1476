// The small languages of this program's own texts: the tables ops.def and states.def, and the statements of models. One
// reader takes their entries apart, and one writer wraps the pages that are made from them. A text that does not parse
// is a bug of ours, which stops every program with the line that is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/expression.h"
#include "planner/plan/instruction.h"

namespace planwright {

// The lines of an entry, with continuation lines (four spaces or more) joined to the line that they continue. Lines
// that begin with # are left out.
std::vector<std::string> LogicalLines(std::string_view entry);

// One line, taken apart from its front. It is made of words and of the marks , : | [ ] which need no spaces around
// them.
class LineReader {
 public:
  explicit LineReader(std::string line);

  bool empty() const { return at_ == line_.size(); }
  std::string_view Peek() const;           // the next word; "" before a mark and at the end
  std::string Take();                      // the next word, which must be there
  std::vector<std::string> TakeWords();    // words up to a mark or the end
  std::string Rest();                      // all that is left, as it is written
  bool TakeIf(std::string_view word);      // whether it was the next word
  bool TakeIf(char mark);                  // whether it was the next character
  size_t TakeNumber();                     // a word of digits
  OpKind TakeKind();                       // the name of an operation
  Expression TakeFormula();                // as much as is one formula
  std::vector<Expression> TakeFormulas();  // with commas between them
  void Expect(bool holds) const;

 private:
  void Drop(size_t size);  // and the spaces behind it

  std::string line_;
  size_t at_ = 0;  // what is left begins here
};

// Appends words of `text` in lines of at most 120 columns, which all but the first begin with `indent`.
void AppendWrapped(std::string_view text, std::string_view indent, std::string& page);

}  // namespace planwright
