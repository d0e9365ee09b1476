// The small languages of texts: the tables ops.def and states.def, and the statements of models. One reader takes their
// entries apart, and one writer wraps the pages that are made from them. A text that does not parse gives problems with
// their places, one for each line that is wrong; whoever owns the text decides what follows. The texts of this program
// are right, or it ends (BuiltInText).
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/text/location.h"
#include "planner/plan/expression.h"
#include "planner/plan/instruction.h"

namespace planwright {

// One thing that is wrong with a text, and where.
struct TextProblem {
  Location where;
  std::string message;
  std::vector<Location> from;  // the lines that state what does not fit there
};
using TextProblems = std::vector<TextProblem>;

// "FILE:12:9: a message", one on each line, with the lines that it comes from: "(from lines 3, 4)".
std::string ProblemsText(const TextProblems& problems);

// For a text that is a part of this program. If there is a problem, all are told, and the program ends (kExitUsage).
void BuiltInText(const TextProblems& problems);

// A line of an entry, joined with the lines that continue it, and where its bytes stand in the file.
class TextLine {
 public:
  // `line`, `column`: where the text begins; both count from 1.
  TextLine(std::shared_ptr<const std::string> file, int line, int column, std::string_view text);
  void Continue(int line, int column, std::string_view text);

  const std::string& text() const { return text_; }
  // Of the byte `at` of the joined text.
  Location At(size_t at, size_t length = 1) const;
  // Of the first such word behind the first `behind`; of the whole line if it has no such word there.
  Location AtWord(std::string_view word, std::string_view behind = "") const;

 private:
  struct Part {
    size_t begin = 0;  // in text_
    int line = 0, column = 0;
  };

  std::shared_ptr<const std::string> file_;
  std::string text_;
  std::vector<Part> parts_;
};

// The lines of an entry, with continuation lines (four spaces or more) joined to the line that they continue. Lines
// that begin with # are left out. `file`: what messages call it.
std::vector<TextLine> LogicalLines(std::string_view entry, std::shared_ptr<const std::string> file,
                                   TextProblems& problems);

// One line, taken apart from its front. It is made of words and of the marks , : | [ ] which need no spaces around
// them. The first thing that is wrong ends the line: what is taken afterwards is empty, and no loop over its words goes
// on.
class LineReader {
 public:
  explicit LineReader(std::shared_ptr<const TextLine> line);
  explicit LineReader(std::string line);  // of no file

  bool empty() const { return at_ == text().size(); }
  std::string_view Peek() const;                                    // the next word; "" before a mark and at the end
  bool HasWord(std::string_view word) const;                        // somewhere in what is left
  std::string Take(std::string_view what = "a word");               // the next word, which must be there
  std::string TakeOneOf(std::initializer_list<const char*> words);  // the next word, which must be one of these
  std::vector<std::string> TakeWords();                             // words up to a mark or the end
  std::vector<std::string> TakeWordsBefore(std::string_view end);   // words up to this one, which must come
  std::string Rest();                                               // all that is left, as it is written
  std::string_view Left() const { return std::string_view(text()).substr(at_); }  // the same; it is not taken
  void Skip(size_t size);                                                         // so many bytes of it are taken
  bool TakeIf(std::string_view word);                                             // whether it was the next word
  bool TakeIf(char mark);                                                         // whether it was the next character
  size_t TakeNumber();                                                            // a word of digits
  OpKind TakeKind();                                                              // the name of an operation
  Expression TakeFormula();                                                       // as much as is one formula
  std::vector<Expression> TakeFormulas();                                         // with commas between them

  void Need(std::string_view word);  // takes the word, which must come next
  void Need(char mark);
  void NeedEnd();  // nothing may be left
  // `wanted` must come next: what `holds` says.
  void Expect(bool holds, std::string_view wanted);
  // The word that was taken last is wrong unless `holds`; `message` says why.
  void Check(bool holds, std::string_view message);
  // As Check, of any place of the line's text.
  void Fail(size_t at, size_t length, std::string message);
  // The word that was taken last is none of `known`.
  void RefuseWord(std::string_view message, const std::vector<std::string>& known);

  bool failed() const { return problem_.has_value(); }
  const std::optional<TextProblem>& problem() const { return problem_; }
  const std::shared_ptr<const TextLine>& line() const { return line_; }

 private:
  const std::string& text() const { return line_->text(); }
  std::string Found() const;
  void Drop(size_t size);  // and the spaces behind it

  std::shared_ptr<const TextLine> line_;
  size_t at_ = 0;                 // what is left begins here
  size_t last_ = 0, length_ = 1;  // the word that was taken last
  std::optional<TextProblem> problem_;
};

// Reads an entry line by line: `read(LineReader&)` takes one apart. Adds what is wrong, in the order of the lines.
template <typename Read>
void ReadLines(std::string_view entry, std::string_view file, TextProblems& problems, const Read& read) {
  for (TextLine& each : LogicalLines(entry, std::make_shared<std::string>(file), problems)) {
    LineReader line(std::make_shared<TextLine>(std::move(each)));
    read(line);
    if (line.failed()) problems.push_back(*line.problem());
  }
}

// Appends words of `text` in lines of at most 120 columns, which all but the first begin with `indent`.
void AppendWrapped(std::string_view text, std::string_view indent, std::string& page);

}  // namespace planwright
