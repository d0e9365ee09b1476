// What others call everything of a model: the keys of their config.json, and their tensors. The text of a kind of
// models ends with its dialects. planner/exchange reads and writes config.json by them, planner/state/weights finds
// tensors.
//
// Notation, by the first word of a line. Lines are joined and commented as those of statements. KEY is a key of the
// recipe ("moe.top_k"). PATH is a key of config.json, or one of an object in it ("a.b"); null counts as absent. Several
// paths with | between them are names of one number: two that differ are a problem. A condition, `when FORMULA`, holds
// if the formula is not 0; `of LETTER` holds if the model has such a layer. Formulas are those of dialect_formula.h,
// over keys, local numbers, `layers`, and of a composite also "language.NAME" and "encoder.NAME"; given(LOCAL) says
// whether config.json has it. In TEXT behind a `:`, {NAME} is where a number came from, and {=NAME} the number.
//
//   dialect NAME, NAME ... [where PATH or PATH] [called TEXT]
//                                    begins a dialect. NAME is a `model_type`; NAME* is a beginning of it. The first
//                                    one is the dialect's own. where: of objects with one of these keys, of any type;
//                                    PATH.* must be an object. No export writes them
//   architecture CLASS               what export writes as `architectures`
//   like DIALECT                     lines of tensors, `remark` and `without SECTION` are those of this dialect; so is
//                                    the model's name in recipes
//   without SECTION                  config.json says nothing of these keys of the recipe
//   read by FUNCTION                 a function of planner/exchange reads the keys that serve this dialect alone
//
// Lines that read, in the order in which they stand. The keys of the recipe come in this order, too.
//
//   layers = PATH | PATH words WORD LETTER, ...    a list of words, one for each layer
//   layers = PATH letters            a text of letters
//   layers LETTER = PATH             a number of layers
//                                    Of several such lines the last that says anything counts; the others must say the
//                                    same
//   KEY = PATH | PATH ... [words WORD VALUE, ...] [else VALUE|KEY] [loose]
//                                    else: what it is without the key; with neither, the key must be there. loose: what
//                                    a model computes does not depend on it, so that export --like does not compare it
//   read LOCAL int|real|flag [or 0] = PATH | PATH ... [else VALUE]
//                                    a number that is no key of the recipe
//   KEY [when FORMULA] is WORD|FORMULA [loose] [: TEXT]
//                                    computed; TEXT says where it came from. Of several lines the first counts whose
//                                    condition holds. A line of a composite counts before those of its parts
//   check PATH | PATH [is FORMULA]   paths that are there must say the same, and this number
//   refuse LOCAL when FORMULA: TEXT  a problem
//   only PATH ... VALUE [within NUMBER] [of LETTER]: WHY
//                                    each of the paths may say nothing else
//   nothing PATH ... [of LETTER]: WHY
//                                    may only be null, false, 0 or an empty object
//   note PATH ... [unless NUMBER] [of LETTER]: WHY
//                                    not taken over: a note. unless: it is a number from this one on, which says
//                                    nothing
//   copied PATH ... [unless NUMBER] [of LETTER]: WHY
//                                    export --like copies it: a note
//   tell when FORMULA: TEXT          a note
//   silent PATH ...: WHY             known, and nothing to tell. PATH.*: all keys of an object that no line reads
//   encoder|language in PATH | PATH as DIALECT | DIALECT
//                                    a composite: the part is in this object. The dialect is the first whose `where`
//                                    holds, else the one of the object's `model_type`
//   image_token = PATH | PATH ...    the id whose places in a text take image rows
//   remark [alone] [SECTION]: TEXT   a comment at the end of the model, or of a section of it, in a recipe. alone:
//                                    not in a composite
//
// A line that begins with KEY, `only`, `nothing` or `note` of a key of a layer that the model does not have is silent.
//
// Lines that write config.json. `model_type` comes first, then what they name, in their order; then, in the order of
// the lines that read, each KEY by its first path and what `only` says; then `architectures`.
//
//   write PATH ...                   as the line says that reads it
//   write PATH ... VALUE|is FORMULA [of LETTER] [when FORMULA] [: TEXT]
//                                    TEXT: no run has it, and export tells so
//   write only KEY VALUE: WHY        another value is refused
//   unwritten PATH ...: WHY
//
// Lines of tensors:
//
//   names ..., tensor ..., form ...  how files hold parameters (planner/state/forms/stored_form.h)
//   language names ..., language tensor ..., language form ...
//                                    of a composite: those of the language model
//   without projection               the weights of `part projection` are not in the folder
//   without tensor                   lines `tensor` of the dialect that it is like are not those of this one
//   extra PATTERN [SIZES] [is VALUE]: WHAT, WHO
//                                    no run trains it, and export --like passes it through. * in PATTERN is any text;
//                                    `...` in front is any prefix or none. is: the model computes as if it had these
//                                    numbers. In SIZES, `any` is any number, and `NAME x FORMULA` any multiple
//   optional NAME ... called WHAT: WHY
//                                    files need not have it; WHY follows its name then
//   missing NAME ...: HINT           what `plan weights` adds if a file does not have it
//   make [alone] NAME [SIZES] [DTYPE] ones|zeros|counting|VALUE [: TEXT]
//                                    export makes it. {layer} is each layer's number; alone: not in a composite;
//                                    {names} in TEXT is what names of the part begin with in the folder
//
// VALUE is a number, true, false, null, a word, a list such as [0, inf], or pixel_mean or pixel_deviation, by which
// images of a run are normalized (pixel_norm.h).
#pragma once

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
  enum class Type { kInteger, kReal, kFlag, kWord };
  std::string name;
  bool local = false;
  Type type = Type::kInteger;
  bool or_zero = false;
  DialectPaths paths;
  std::vector<std::pair<std::string, std::string>> words;  // of config.json, of the recipe
  std::string otherwise;                                   // a value of the recipe, or a key before it; empty: none
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

struct DialectLayers {
  enum class Form { kWords, kLetters, kNumber };
  Form form = Form::kWords;
  DialectPaths paths;
  std::vector<std::pair<std::string, char>> words;
  char letter = 0;  // kNumber
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
  std::string value;  // kOnly: as JSON
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

using DialectLine = std::variant<DialectNumber, DialectComputed, DialectLayers, DialectCheck, DialectRule, DialectTell,
                                 DialectPart, DialectImageToken, DialectFunction>;

// One path that export writes.
struct DialectWrite {
  std::string path;
  std::string value;  // as JSON; empty: the formula, or as it is read
  std::optional<DialectFormula> formula;
  char of = 0;
  std::optional<DialectFormula> when;
  std::string text;
  StatedLine line;
};

// write only KEY VALUE
struct DialectSayable {
  std::string key, value;  // of the recipe
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
  std::string what, who;
  StatedLine line;
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

// Dialects that know each other by name.
class DialectSet {
 public:
  explicit DialectSet(std::vector<Dialect> dialects) : dialects_(std::move(dialects)) {}

  std::span<const Dialect> all() const { return dialects_; }
  const Dialect* Find(std::string_view name) const;  // by its own name; null: there is none
  const Dialect* OfType(std::string_view model_type) const;
  // The one whose names and tensors it has: itself, or what it is `like`.
  const Dialect& RootOf(const Dialect& dialect) const;
  // The one of a kind of models that export writes, alone or as a composite with a language model of `language`; null:
  // there is none.
  const Dialect* ToWrite(std::string_view kind, std::string_view language = "") const;
  // The dialect of an extra tensor of this name, and the tensor.
  const DialectExtra* FindExtra(std::string_view tensor) const;
  // Whether files need not have the tensor; `missing`: what is said if one does not have it.
  const DialectHint* FindOptional(std::string_view published) const;
  const DialectHint* FindMissing(std::string_view published) const;

 private:
  std::vector<Dialect> dialects_;
};

// Those of the kinds of models that come with this program.
const DialectSet& BuiltInDialects();

// Whether `text` is `pattern`, in which * stands for any text.
bool MatchesPattern(std::string_view pattern, std::string_view text);

}  // namespace planwright
