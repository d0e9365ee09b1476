#include "planner/state/dialect/parse_dialect.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/statement/take_words.h"
#include "planner/state/dialect/dialect_keys.h"
#include "planner/state/dialect/take_dialect_lines.h"
#include "planner/state/dialect/take_dialect_words.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;
using Type = DialectNumber::Type;

class DialectParser {
 public:
  explicit DialectParser(const ModelStatement& statement) : statement_(statement) {}

  ParsedDialects Parse(string_view file, string_view text) {
    ParsedDialects parsed;
    bool begun = false;
    size_t lines = 0;
    TextProblems of_lines;  // ParseStatement tells them
    ReadLines(text, file, of_lines, [&](LineReader& line) {
      begun = begun || line.Peek() == "dialect";
      if (++lines > kMostStatementLines + 1 || !begun) return;
      if (lines > kMostStatementLines) {
        line.Expect(false, Cat("the end of the text: it may have ", kMostStatementLines, " lines"));
      } else if (line.TakeIf("dialect")) {
        open_ = nullptr;
        refusing_ = false;
        if (line.TakeIf("lines")) {
          ParseCommon(line);
        } else {
          ParseHead(line);
        }
      } else if (open_ != nullptr) {
        open_->lines.push_back(line);
        return;
      } else if (refusing_) {
        line.Expect(false, "the next `dialect`: one that is refused has no lines");
      } else if (line.TakeIf("has")) {
        ParseHas(line, parsed.problems);
      } else {
        ParseLine(line);
      }
      line.NeedEnd();
      if (line.failed()) parsed.problems.push_back(*line.problem());
    });
    for (const auto& [name, common] : common_) {
      if (!common.used)
        parsed.problems.push_back({PlaceOf(common.line, name), Cat("no dialect has the lines ", Quoted(name)), {}});
    }
    parsed.dialects = std::move(dialects_);
    parsed.refused = std::move(refused_);
    return parsed;
  }

 private:
  // Lines that dialects have in common. They are read in each dialect that has them.
  struct Common {
    std::vector<LineReader> lines;
    bool used = false, told = false;  // told: what is wrong with them
    StatedLine line;
  };

  Dialect& dialect() { return dialects_.back(); }

  // "NAME"
  void ParseCommon(LineReader& line) {
    const string name = TakeName(line, "what dialects call these lines");
    line.Check(line.failed() || !common_.contains(name), Cat("there are lines ", Quoted(name), " already"));
    open_ = &common_[name];
    open_->line = line.line();
  }

  // "NAME"
  void ParseHas(LineReader& line, TextProblems& problems) {
    const string name = line.Take("the name of lines before it");
    const auto found = common_.find(name);
    if (found == common_.end()) {
      std::vector<string> known;
      for (const auto& [each, common] : common_) known.push_back(each);
      return RefuseUnless(line, false, Cat("no lines ", Quoted(name), " are before it"), known);
    }
    found->second.used = true;
    for (LineReader each : found->second.lines) {
      ParseLine(each);
      each.NeedEnd();
      if (each.failed() && !found->second.told) problems.push_back(*each.problem());
    }
    found->second.told = true;
  }

  // "NAME, NAME ... [where PATH or PATH] [called TEXT]" or "NAME, NAME ... refused: WHY"
  void ParseHead(LineReader& line) {
    std::vector<string> names;
    do {
      names.push_back(line.Take("a `model_type`"));
      const size_t star = names.back().find('*');
      line.Check(
          star == string::npos || (star > 0 && star + 1 == names.back().size()),
          Cat(Quoted(names.back()), " has a star that is not at the end of a beginning: expected NAME or NAME*"));
    } while (line.TakeIf(','));
    refusing_ = line.TakeIf("refused");
    if (refusing_) {
      string why = TakeFreeText(line, "why such models cannot be expressed");
      const string& text = line.line()->text();
      if (const size_t open = why.find('{'); open != string::npos && !line.failed())
        line.Fail(text.size() - why.size() + open, 1, "nothing of such a model is read, so the text has no {NAME}");
      refused_.push_back({std::move(names), std::move(why), line.line()});
      return;
    }
    dialects_.emplace_back();
    dialect().kind = statement_.kind;
    dialect().line = line.line();
    dialect().names = std::move(names);
    if (line.TakeIf("where")) {
      do dialect().where.push_back(line.Take("a key"));
      while (line.TakeIf("or"));
    }
    if (line.TakeIf("called")) dialect().called = line.Rest();
    line.Check(line.failed() || dialect().called.empty() == dialect().where.empty(),
               "a dialect with `where` is `called` something in messages");
  }

  void ParseLine(LineReader& line) {
    if (ParseTensorLine(line, dialect()) || TakeRule(line, statement_, dialect()) || ParseOfWhole(line)) return;
    if (auto layers = TakeLayers(line, statement_)) {
      dialect().lines.emplace_back(*std::move(layers));
    } else if (line.TakeIf("place")) {
      TakePlace(line, statement_, dialect());
    } else if (line.TakeIf("insert")) {
      dialect().lines.emplace_back(TakeInsert(line, statement_));
    } else if (line.TakeIf("read")) {
      ParseRead(line);
    } else if (line.TakeIf("check")) {
      DialectCheck check;
      check.line = line.line();
      check.paths = TakePaths(line);
      if (line.TakeIf("is")) check.formula = DialectFormula::Take(line);
      dialect().lines.emplace_back(std::move(check));
    } else if (line.TakeIf("refuse")) {
      ParseTell(line, line.Take("a local number"));
    } else if (line.TakeIf("tell")) {
      ParseTell(line, "");
    } else if (line.TakeIf("write")) {
      ParseWrite(line);
    } else {
      ParseKey(line);
    }
  }

  // Lines of the dialect as a whole.
  bool ParseOfWhole(LineReader& line) {
    Dialect& of = dialect();
    if (line.TakeIf("architecture")) {
      of.architecture = line.Take("the name of a class");
    } else if (line.TakeIf("like")) {
      of.like = line.Take("the name of a dialect");
    } else if (line.TakeIf("without")) {
      const string word = line.Take("`projection`, `folder`, `tensor` or a section of the recipe");
      if (word == "projection") {
        of.projection = false;
      } else if (word == "folder") {
        of.folder = false;
      } else if (word == "tensor") {
        of.tensors = false;
      } else {
        RefuseUnless(line, IsSection(word),
                     Cat(Quoted(word), " is none of `projection`, `folder` and `tensor`, and no section of the recipe"),
                     Sections());
        of.without.push_back(word);
      }
    } else if (line.TakeIf("remark")) {
      DialectRemark remark;
      remark.alone = line.TakeIf("alone");
      if (!line.Peek().empty()) remark.section = line.Take();
      RefuseUnless(line, remark.section.empty() || IsSection(remark.section),
                   Cat(Quoted(remark.section), " is no section of the recipe"), Sections());
      remark.text = TakeFreeText(line, "the comment");
      of.remarks.push_back(std::move(remark));
    } else if (line.TakeIf("unwritten")) {
      for (string& path : TakeWordsTo(line, {})) of.unwritten.push_back(std::move(path));
      TakeFreeText(line, "why");
    } else if (line.TakeIf("image_token")) {
      line.Need("=");
      of.lines.emplace_back(DialectImageToken{TakePaths(line)});
    } else if (line.Peek() == "encoder" || line.Peek() == "language") {
      DialectPart part;
      part.line = line.line();
      part.encoder = line.Take() == "encoder";
      line.Need("in");
      part.paths = TakePaths(line);
      line.Need("as");
      do part.dialects.push_back(line.Take("the name of a dialect"));
      while (line.TakeIf('|'));
      of.lines.emplace_back(std::move(part));
    } else {
      return false;
    }
    return true;
  }

  // "by FUNCTION", or "LOCAL int|real|flag|list [or 0] = ..."
  void ParseRead(LineReader& line) {
    if (line.TakeIf("by")) {
      dialect().lines.emplace_back(DialectFunction{line.TakeOneOf({kRadioArguments}), line.line()});
      return;
    }
    DialectNumber number;
    number.local = true;
    number.name = TakeName(line, "a name");
    line.Check(line.failed() || FindKey(number.name) == nullptr,
               "it is a key of the recipe, which is read without `read`");
    const string type = line.TakeOneOf({"int", "real", "flag", "list"});
    number.type = type == "real"   ? Type::kReal
                  : type == "flag" ? Type::kFlag
                  : type == "list" ? Type::kList
                                   : Type::kInteger;
    if (line.TakeIf("or")) {
      line.Need("0");
      number.or_zero = true;
    }
    line.Need("=");
    ParseNumber(line, std::move(number));
  }

  // "PATH | PATH ... [words WORD VALUE, ...] [else VALUE|NAME] [loose] [when FORMULA]"
  void ParseNumber(LineReader& line, DialectNumber number) {
    number.line = line.line();
    number.paths = TakePaths(line);
    if (number.type == Type::kWord) {
      line.Need("words");
      do {
        string word = line.Take("a word of config.json");
        number.words.emplace_back(std::move(word), line.Take("a word of the recipe"));
      } while (line.TakeIf(','));
    }
    if (number.type != Type::kList && line.TakeIf("else")) number.otherwise = line.Take("a number or a name");
    number.loose = line.TakeIf("loose");
    if (line.TakeIf("when")) number.when = DialectFormula::Take(line);
    dialect().lines.emplace_back(std::move(number));
  }

  // "KEY = ..." or "KEY [when FORMULA] is WORD|FORMULA [loose] [: TEXT]"
  void ParseKey(LineReader& line) {
    const string name = TakeName(line, "a key of the recipe, or what a line of a dialect begins with");
    if (line.failed()) return;
    const StatedKey* key = FindKey(name);
    if (!key)
      return line.RefuseWord(Cat(Quoted(name), " is no key of such a recipe, and begins no line of a dialect"),
                             BeginsOfLines());
    const bool choice = key->form == StatedKey::Form::kChoice;
    const StatedConstant* constant = ConstantOfKey(statement_, *key);
    if (line.TakeIf("=")) {
      DialectNumber number;
      number.name = name;
      number.of = constant ? constant->of : char{0};
      number.or_zero = constant && constant->or_zero;
      number.type = choice                                ? Type::kWord
                    : key->type == StatedKey::Type::kReal ? Type::kReal
                    : key->type == StatedKey::Type::kFlag ? Type::kFlag
                                                          : Type::kInteger;
      return ParseNumber(line, std::move(number));
    }
    DialectComputed computed;
    computed.line = line.line();
    computed.name = name;
    computed.of = constant ? constant->of : char{0};
    if (line.TakeIf("when")) computed.when = DialectFormula::Take(line);
    line.Need("is");
    if (choice) {
      computed.word = line.Take("a word of the recipe");
    } else {
      computed.formula = DialectFormula::Take(line);
    }
    computed.loose = line.TakeIf("loose");
    if (!line.empty()) computed.source = TakeFreeText(line, "where it came from");
    dialect().lines.emplace_back(std::move(computed));
  }

  // "when FORMULA: TEXT"
  void ParseTell(LineReader& line, string refused) {
    DialectTell tell;
    tell.line = line.line();
    tell.refused = std::move(refused);
    line.Need("when");
    tell.when = DialectFormula::Take(line);
    tell.text = TakeFreeText(line, "what is told");
    dialect().lines.emplace_back(std::move(tell));
  }

  // "PATH ... [VALUE|is FORMULA|blocks LETTER] [of LETTER] [when FORMULA] [: TEXT]" or "only KEY VALUE [or FORMULA]:
  // WHY"
  void ParseWrite(LineReader& line) {
    if (line.TakeIf("only")) {
      DialectSayable& only = dialect().sayable.emplace_back();
      only.line = line.line();
      only.key = line.Take("a key of the recipe");
      RefuseUnless(line, FindKey(only.key) != nullptr, Cat(Quoted(only.key), " is no key of such a recipe"),
                   KeysOfDialects(statement_));
      only.value = line.Take("a value of the recipe");
      if (line.TakeIf("or")) only.same = DialectFormula::Take(line);
      only.why = TakeFreeText(line, "why");
      return;
    }
    DialectWrite write;
    write.line = line.line();
    std::vector<string> paths;
    while (!line.Peek().empty() && !IsValue(line.Peek()) && line.Peek() != "is" && line.Peek() != "of" &&
           line.Peek() != "blocks" && line.Peek() != "when")
      paths.push_back(line.Take());
    line.Expect(!paths.empty(), "a key of config.json");
    if (line.TakeIf("is")) {
      write.formula = DialectFormula::Take(line);
    } else if (line.TakeIf("blocks")) {
      write.blocks = TakeLetter(line, statement_);
    } else if (!line.Peek().empty() ? IsValue(line.Peek()) : line.Left().starts_with("[")) {
      write.value = TakeValue(line, false);
    }
    write.of = TakeOfLayer(line, statement_);
    if (line.TakeIf("when")) write.when = DialectFormula::Take(line);
    if (!line.empty()) write.text = TakeFreeText(line, "what export tells");
    for (string& path : paths) {
      write.path = std::move(path);
      dialect().writing.push_back(write);
      write.text.clear();
    }
  }

  static void RefuseUnless(LineReader& line, bool holds, const string& message, const std::vector<string>& known) {
    if (!holds && !line.failed()) line.RefuseWord(message, known);
  }
  const StatedKey* FindKey(string_view name) const { return FindDialectKey(statement_, name); }
  std::vector<string> Sections() const { return SectionsOf(statement_); }
  bool IsSection(string_view name) const {
    const std::vector<string> sections = Sections();
    return std::find(sections.begin(), sections.end(), name) != sections.end();
  }
  // What a line may begin with.
  std::vector<string> BeginsOfLines() const {
    std::vector<string> names = KeysOfDialects(statement_);
    for (const char* word :
         {"architecture", "like",  "without",   "read",  "layers", "blocks",      "place",  "check",
          "refuse",       "only",  "nothing",   "note",  "copied", "tell",        "silent", "encoder",
          "language",     "write", "unwritten", "names", "tensor", "form",        "extra",  "optional",
          "missing",      "make",  "dialect",   "has",   "remark", "image_token", "insert"})
      names.emplace_back(word);
    return names;
  }

  const ModelStatement& statement_;
  std::vector<Dialect> dialects_;
  std::vector<DialectRefusal> refused_;
  bool refusing_ = false;  // the last line `dialect` refuses
  std::map<string, Common> common_;
  Common* open_ = nullptr;  // that takes the lines now; null: a dialect does
};

}  // namespace

ParsedDialects ParseDialects(string_view file, string_view text, const ModelStatement& statement) {
  return DialectParser(statement).Parse(file, text);
}

}  // namespace planwright
