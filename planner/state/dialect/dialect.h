// What others call everything of a model: the keys of their config.json, and their tensors. The text of a kind of
// models ends with its dialects. planner/exchange reads and writes config.json by them, planner/state/weights finds
// tensors.
//
// docs/model/notation.md#dialects explains every line of the notation.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/plan/statement/model_statement.h"
#include "planner/state/dialect/dialect_formula.h"
#include "planner/state/forms/stored_form.h"

namespace planwright {

using DialectPaths = std::vector<std::string>;

// KEY = ..., read LOCAL = ...
struct DialectNumber {
  enum class Type { kInteger, kReal, kFlag, kWord, kList };  // kList: of integers, a local one
  std::string name;
  bool local = false;
  Type type = Type::kInteger;
  bool or_zero = false;
  DialectPaths paths;
  std::vector<std::pair<std::string, std::string>> words;  // of config.json, of the recipe
  std::string otherwise;                                   // a value of the recipe, or a name before it; empty: none
  std::optional<DialectFormula> when;
  char of = 0;
  bool loose = false;
  StatedLine line;
};

// KEY is ...
struct DialectComputed {
  std::string name;
  std::optional<DialectFormula> when;
  std::optional<DialectFormula> formula;  // none: `word`
  std::string word;
  char of = 0;
  bool loose = false;
  std::string source;  // TEXT
  StatedLine line;
};

// One layer of each block: the first letter whose condition holds, over the block's number `i`.
struct DialectPlace {
  struct Choice {
    char letter = 0;
    std::optional<DialectFormula> when;  // none: it holds
  };
  std::vector<Choice> choices;
  StatedLine line;
};

// layers, or blocks and its lines `place`
struct DialectLayers {
  enum class Form { kWords, kLetters, kNumber, kBlocks };
  Form form = Form::kWords;
  DialectPaths paths;
  std::vector<std::pair<std::string, char>> words;
  char letter = 0;                   // kNumber
  int64_t otherwise = 0;             // kNumber: without the key; 0: it must be there
  std::vector<DialectPlace> places;  // kBlocks
  StatedLine line;
};

// insert: one more layer behind blocks of what the lines `layers` or `blocks` have said.
struct DialectInsert {
  char letter = 0;
  // A list of the numbers of the blocks, ascending. None: of a composite, in its language model, behind as many first
  // blocks as the encoder has such layers.
  DialectPaths paths;
  std::string otherwise;  // the list without the key, as JSON; empty: no block
  StatedLine line;
};

struct DialectCheck {
  DialectPaths paths;
  std::optional<DialectFormula> formula;
  StatedLine line;
};

// only, nothing, note, copied, silent
struct DialectRule {
  enum class Kind { kOnly, kNothing, kNote, kCopied, kSilent };
  Kind kind{};
  DialectPaths paths;
  std::string value;      // kOnly: as JSON
  bool each = false;      // kOnly: the path is a list, and each of its elements has the value
  std::string otherwise;  // kOnly, kNothing: what it is without the key, as JSON; empty: nothing
  std::optional<double> within, unless;
  char of = 0;
  std::string why;
  StatedLine line;
};

// refuse, tell
struct DialectTell {
  std::string refused;  // the local number; empty: a note
  DialectFormula when;
  std::string text;
  StatedLine line;
};

struct DialectPart {
  bool encoder = false;  // else the language model
  DialectPaths paths;
  std::vector<std::string> dialects;
  StatedLine line;
};

struct DialectImageToken {
  DialectPaths paths;
};

// read by FUNCTION: reads what RADIO's own code writes (planner/exchange/radio_arguments.h)
inline constexpr char kRadioArguments[] = "radio_arguments";
struct DialectFunction {
  std::string name;
  StatedLine line;
};

using DialectLine = std::variant<DialectNumber, DialectComputed, DialectLayers, DialectInsert, DialectCheck,
                                 DialectRule, DialectTell, DialectPart, DialectImageToken, DialectFunction>;

// One path that export writes.
struct DialectWrite {
  std::string path;
  std::string value;  // as JSON; empty: the formula, or as it is read
  std::optional<DialectFormula> formula;
  char blocks = 0;  // the numbers of the blocks with such a layer
  char of = 0;
  std::optional<DialectFormula> when;
  std::string text;
  StatedLine line;
};

// write only KEY VALUE
struct DialectSayable {
  std::string key, value;              // of the recipe
  std::optional<DialectFormula> same;  // a number that says the same as the value
  std::string why;
  StatedLine line;
};

// A size of a tensor: a formula, or any multiple of one.
struct DialectSize {
  std::string any;  // "any", "frames"; empty: the formula itself
  std::optional<DialectFormula> formula;
};

struct DialectExtra {
  std::string kind;     // of the models
  std::string pattern;  // without the `...` in front
  bool anywhere = false;
  std::optional<std::vector<DialectSize>> sizes;  // none: any
  std::string is;                                 // as JSON; empty: any numbers
  DialectPaths copy_of;            // the tensor whose numbers it has: the one of these that a folder has; empty: none
  std::string own_key, own_value;  // of the recipe: with them the model has such a tensor of its own; empty: never
  std::string what, who;
  StatedLine line;

  // The first name of copy_of that a folder has; null: none, or it is no copy.
  const std::string* Original(const std::function<bool(const std::string&)>& has) const;
};

// optional, missing
struct DialectHint {
  std::vector<std::string> names;  // as they are published
  std::string called, text;
  StatedLine line;
};

struct DialectMade {
  std::string name;
  bool alone = false;
  std::vector<DialectFormula> sizes;
  std::optional<DType> dtype;  // none: that of the folder
  std::string fill;            // "ones", "zeros", "counting", or JSON
  std::string text;
  StatedLine line;
};

struct DialectRemark {
  bool alone = false;
  std::string section, text;
};

struct Dialect {
  std::string kind;                // of the models
  std::vector<std::string> names;  // of model_type
  DialectPaths where;
  std::string called;  // in messages, where it has no model_type
  std::string architecture, like;
  std::vector<std::string> without;  // sections
  std::vector<DialectLine> lines;
  std::vector<DialectRemark> remarks;
  std::vector<DialectWrite> writing;
  std::vector<DialectSayable> sayable;
  DialectPaths unwritten;
  bool projection = true;  // the weights of `part projection` are in the folder
  bool folder = true;      // such a model has a folder of its own; else export writes it in a composite alone
  bool tensors = true;     // it has the lines `tensor` of the dialect that it is like
  FormLines forms, language_forms;
  std::vector<DialectExtra> extras;
  std::vector<DialectHint> optional, missing;
  std::vector<DialectMade> made;
  StatedLine line;

  const std::string& name() const { return names.front(); }
  bool composite() const;
  const DialectPart* language() const;  // of a composite; null: it has none
};

// dialect NAME, NAME ... refused: WHY
struct DialectRefusal {
  std::vector<std::string> names;  // of model_type
  std::string why;
  StatedLine line;
};

// Whether one of `names` is this `model_type`: NAME, or NAME* that it begins with.
bool HasType(const std::vector<std::string>& names, std::string_view model_type);

// Dialects that know each other by name, and types that are none for a reason.
class DialectSet {
 public:
  explicit DialectSet(std::vector<Dialect> dialects, std::vector<DialectRefusal> refused = {})
      : dialects_(std::move(dialects)), refused_(std::move(refused)) {}

  std::span<const Dialect> all() const { return dialects_; }
  std::span<const DialectRefusal> refused() const { return refused_; }
  const Dialect* Find(std::string_view name) const;  // by its own name; null: there is none
  const Dialect* OfType(std::string_view model_type) const;
  // Why a type is refused, as a line says it; null: no line does.
  const std::string* RefusalOf(std::string_view model_type) const;
  // The one whose names and tensors it has: itself, or what it is `like`.
  const Dialect& RootOf(const Dialect& dialect) const;
  // Those of a kind of models that export may write, alone or as a composite with a language model of `language`.
  std::vector<const Dialect*> ToWrite(std::string_view kind, std::string_view language = "") const;
  // The dialect of an extra tensor of this name, and the tensor.
  const DialectExtra* FindExtra(std::string_view tensor) const;
  // Whether files need not have the tensor; `missing`: what is said if one does not have it.
  const DialectHint* FindOptional(std::string_view published) const;
  const DialectHint* FindMissing(std::string_view published) const;

 private:
  std::vector<Dialect> dialects_;
  std::vector<DialectRefusal> refused_;
};

// Those of the kinds of models that come with this program.
const DialectSet& BuiltInDialects();

// Whether `text` is `pattern`, in which * stands for any text.
bool MatchesPattern(std::string_view pattern, std::string_view text);

}  // namespace planwright
