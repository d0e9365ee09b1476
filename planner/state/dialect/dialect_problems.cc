#include "planner/state/dialect/dialect_problems.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/state/dialect/dialect_keys.h"
#include "planner/state/forms/disk_tensors.h"

namespace planwright {
namespace {

using std::string;
using Form = StatedKey::Form;

string SectionOfKey(const string& key) { return key.substr(0, std::min(key.find('.'), key.size())); }

class OneDialect {
 public:
  OneDialect(const DialectSet& all, const Dialect& dialect, const ModelStatement& statement, TextProblems& problems)
      : all_(all), dialect_(dialect), statement_(statement), problems_(problems) {}

  void Check() {
    for (const string& key : KeysOfDialects(statement_)) keys_.insert(key);
    names_ = keys_;
    names_.insert({"layers", "sequence", "end_token", "pad_token"});
    for (const DialectLine& line : dialect_.lines) {
      const auto* number = std::get_if<DialectNumber>(&line);
      if (number && number->local) (number->type == DialectNumber::Type::kList ? lists_ : names_).insert(number->name);
    }
    if (!dialect_.like.empty()) {
      const Dialect* like = all_.Find(dialect_.like);
      if (!like || like == &dialect_ || like->kind != dialect_.kind)
        Add(dialect_.line, dialect_.like,
            Cat("it is like ", Quoted(dialect_.like), ", which is no other dialect of this kind"));
    }
    for (const DialectLine& line : dialect_.lines) std::visit([this](const auto& one) { CheckLine(one); }, line);
    for (const DialectWrite& write : dialect_.writing) CheckWrite(write);
    for (const DialectSayable& only : dialect_.sayable) {
      CheckWord(only.key, only.value, only.line);
      if (only.same) CheckFormula(*only.same, only.line);
    }
    for (const DialectMade& made : dialect_.made) {
      for (const DialectFormula& size : made.sizes) CheckFormula(size, made.line);
    }
    for (const DialectExtra& extra : dialect_.extras) {
      for (const DialectSize& size : extra.sizes.value_or(std::vector<DialectSize>())) {
        if (size.formula) CheckFormula(*size.formula, extra.line);
      }
      if (!extra.own_key.empty() && !keys_.contains(extra.own_key))
        Add(extra.line, extra.own_key, WithNear(Cat(Quoted(extra.own_key), " is no key"), extra.own_key, &keys_));
    }
    CheckGiven();
    if (dialect_.folder && !dialect_.composite()) CheckFirsts();
  }

 private:
  // What a folder of the encoder says is not for a first recipe to say. A word or number that the dialect has for each
  // folder is.
  void CheckFirsts() {
    for (const StatedFirst& first : statement_.firsts) {
      const auto of_folder = [&](const DialectLine& line) -> StatedLine {
        const auto* number = std::get_if<DialectNumber>(&line);
        if (number && !number->local && number->name == first.key) return number->line;
        const auto* computed = std::get_if<DialectComputed>(&line);
        const bool varies = computed && (computed->when || (computed->formula && !computed->formula->names().empty()));
        return varies && computed->name == first.key ? computed->line : nullptr;
      };
      for (const DialectLine& line : dialect_.lines) {
        const StatedLine said = of_folder(line);
        if (!said) continue;
        problems_.push_back({PlaceOf(first.line, first.key),
                             Cat("folders of the type ", Quoted(dialect_.name()), " say the key ", first.key),
                             {PlaceOf(said, first.key)}});
        break;
      }
    }
  }

  void Add(const StatedLine& line, const string& word, string message) {
    problems_.push_back({PlaceOf(line, word), std::move(message), {}});
  }

  void CheckLine(const DialectNumber& number) {
    const string& otherwise = number.otherwise;
    for (const string& path : number.paths) read_.insert(path);
    if (number.when) CheckFormula(*number.when, number.line);
    const bool names_key = names_.contains(otherwise) && number.type != DialectNumber::Type::kWord;
    if (names_key && !given_.contains(otherwise))
      Add(number.line, otherwise, Cat("no line before it gives ", otherwise));
    if (number.type == DialectNumber::Type::kWord) {
      for (const auto& [theirs, ours] : number.words) CheckWord(number.name, ours, number.line);
      if (!otherwise.empty()) {
        const auto is_it = [&](const auto& word) { return word.first == otherwise; };
        if (std::none_of(number.words.begin(), number.words.end(), is_it))
          Add(number.line, otherwise, Cat(Quoted(otherwise), " is none of the words of config.json before it"));
      }
    } else if (!otherwise.empty() && !names_key && !IsNumberOf(number, otherwise)) {
      Add(number.line, otherwise, Cat(Quoted(otherwise), " is neither such a number nor a name before it"));
    }
    given_.insert(number.name);
  }

  static bool IsNumberOf(const DialectNumber& number, const string& text) {
    if (number.type == DialectNumber::Type::kFlag) return text == "true" || text == "false";
    const bool whole = text.find_first_not_of("0123456789") == string::npos;
    const bool real = text.find_first_not_of("0123456789.e-") == string::npos;
    return number.type == DialectNumber::Type::kReal ? real : whole && (number.or_zero || text != "0");
  }

  void CheckLine(const DialectComputed& computed) {
    if (computed.when) CheckFormula(*computed.when, computed.line);
    if (computed.formula) CheckFormula(*computed.formula, computed.line);
    if (!computed.word.empty()) CheckWord(computed.name, computed.word, computed.line);
    CheckTemplate(computed.source, computed.line);
    given_.insert(computed.name);
  }

  void CheckLine(const DialectLayers& layers) {
    const bool number = layers.form == DialectLayers::Form::kNumber;
    const bool blocks = layers.form == DialectLayers::Form::kBlocks;
    const char* key = number ? "layers" : "pattern";
    const bool has = std::any_of(statement_.keys.begin(), statement_.keys.end(), [&](const StatedKey& its) {
      return its.form == StatedKey::Form::kLayers && its.name == key;
    });
    if (!blocks && !has) Add(layers.line, "layers", Cat("recipes have no key `", key, "`, which such a line gives"));
    for (const string& path : layers.paths) read_.insert(path);
    has_layers_ = true;
    if (blocks && layers.places.empty()) Add(layers.line, "blocks", "no line `place` says which layers a block has");
    for (const DialectPlace& place : layers.places) {
      for (const DialectPlace::Choice& choice : place.choices) {
        letters_ += choice.letter;
        if (choice.when) CheckPlace(*choice.when, place.line);
      }
    }
    if (number) letters_ += layers.letter;
    for (const auto& [word, letter] : layers.words) letters_ += letter;
    if (layers.form == DialectLayers::Form::kLetters) letters_ += AllLetters();
  }

  // Letters are known before any key of a layer is read.
  void CheckPlace(const DialectFormula& formula, const StatedLine& line) {
    for (const string& name : formula.names()) {
      if (name == kBlockNumber) continue;
      const bool list = name.starts_with(kBlockIsIn);
      const string inner = list ? name.substr(kBlockIsIn.size()) : name;
      const std::set<string>& known = list ? lists_ : names_;
      if (!known.contains(inner)) {
        Add(line, inner, WithNear(Cat(Quoted(inner), list ? " is no list here" : " is no number here"), inner, &known));
      } else if (!given_.contains(inner)) {
        Add(line, inner, Cat("no line before `blocks` gives ", inner));
      }
    }
  }

  void CheckLine(const DialectInsert& insert) {
    read_.insert(insert.paths.begin(), insert.paths.end());
    if (insert.paths.empty() && !dialect_.composite())
      Add(insert.line, "language", "layers are inserted in a language model where the dialect is of a whole");
  }

  void CheckLine(const DialectCheck& check) {
    for (const string& path : check.paths) read_.insert(path);
    if (check.formula) CheckFormula(*check.formula, check.line);
  }

  void CheckLine(const DialectRule& rule) {
    if (rule.kind == DialectRule::Kind::kOnly) read_.insert(rule.paths.begin(), rule.paths.end());
  }

  void CheckLine(const DialectTell& tell) {
    CheckFormula(tell.when, tell.line);
    CheckTemplate(tell.text, tell.line);
    if (!tell.refused.empty() && (!names_.contains(tell.refused) || keys_.contains(tell.refused)))
      Add(tell.line, tell.refused, WithNear(Cat(Quoted(tell.refused), " is no local number"), tell.refused));
  }

  void CheckLine(const DialectPart& part) {
    for (const string& path : part.paths) read_.insert(path);
    for (const string& name : part.dialects) {
      const Dialect* inner = all_.Find(name);
      if (!inner || inner->composite()) {
        Add(part.line, name, Cat("there is no dialect ", Quoted(name), " of one model"));
      } else if (part.encoder && inner->kind != dialect_.kind) {
        Add(part.line, name, Cat("the dialect ", name, " is of another kind of models than the encoder of this text"));
      }
    }
    has_layers_ = true;
    letters_ = AllLetters();
    if (!part.encoder) return;
    if (const Dialect* inner = all_.Find(part.dialects.front())) given_ = GivenBy(*inner);
  }

  void CheckLine(const DialectImageToken& token) { read_.insert(token.paths.begin(), token.paths.end()); }
  void CheckLine(const DialectFunction&) { has_function_ = true; }

  static std::set<string> GivenBy(const Dialect& dialect) {
    std::set<string> given;
    for (const DialectLine& line : dialect.lines) {
      if (const auto* number = std::get_if<DialectNumber>(&line)) given.insert(number->name);
      if (const auto* computed = std::get_if<DialectComputed>(&line)) given.insert(computed->name);
    }
    return given;
  }

  // A key that a recipe must have, and that neither a line nor a function gives, an import could not write.
  void CheckGiven() {
    if (!has_layers_ && !has_function_) Add(dialect_.line, dialect_.name(), "no line says which layers there are");
    for (const StatedKey& key : statement_.keys) {
      if (!keys_.contains(key.name) || !key.required || given_.contains(key.name) || has_function_) continue;
      const auto& without = all_.RootOf(dialect_).without;
      if (std::find(without.begin(), without.end(), SectionOfKey(key.name)) != without.end()) continue;
      // Layers that the dialect cannot say have no numbers.
      const StatedConstant* constant = ConstantOfKey(statement_, key);
      if (constant && constant->of != 0 && letters_.find(constant->of) == string::npos) continue;
      Add(dialect_.line, dialect_.name(), Cat("no line gives ", key.name, ", which a recipe must have"));
    }
  }

  string AllLetters() const {
    string letters;
    for (const StatedLayer& layer : statement_.layer_kinds) letters += layer.letter;
    return letters;
  }

  void CheckWrite(const DialectWrite& write) {
    if (write.formula) CheckFormula(*write.formula, write.line);
    if (write.when) CheckFormula(*write.when, write.line);
    CheckTemplate(write.text, write.line);
    if (write.formula || !write.value.empty() || write.blocks != 0 || write.path == "architectures" ||
        read_.contains(write.path))
      return;
    Add(write.line, write.path,
        WithNear(Cat("no line reads ", write.path, ", so it has no value here"), write.path, &read_));
  }

  void CheckWord(const string& key, const string& word, const StatedLine& line) {
    for (const StatedKey& each : statement_.keys) {
      if (each.name != key || each.form != Form::kChoice) continue;
      const auto is_it = [&](const auto& other) { return other.first == word; };
      if (std::any_of(each.words.begin(), each.words.end(), is_it)) continue;
      std::vector<string> known;
      for (const auto& [known_word, number] : each.words) known.push_back(known_word);
      const string near = NearNameHelp(word, known);
      Add(line, word, Cat(Quoted(word), " is no word of the key ", key, near.empty() ? "" : Cat("; ", near)));
    }
  }

  void CheckFormula(const DialectFormula& formula, const StatedLine& line) {
    for (const string& name : formula.names()) CheckName(name, line);
  }

  // "{NAME}" and "{=NAME}".
  void CheckTemplate(const string& text, const StatedLine& line) {
    for (size_t open = text.find('{'); open != string::npos; open = text.find('{', open + 1)) {
      const size_t begin = open + (text.substr(open + 1, 1) == "=" ? 2 : 1);
      const size_t close = text.find('}', open);
      if (close == string::npos) return Add(line, "", "a `{` of the text is not closed");
      CheckName(text.substr(begin, close - begin), line);
    }
  }

  void CheckName(const string& name, const StatedLine& line) {
    string inner = name.starts_with("given(") ? name.substr(6, name.size() - 7) : name;
    // Names of the parts of a composite are theirs.
    const bool in_composite = dialect_.composite() || !dialect_.folder;
    if (in_composite && (inner.starts_with("language.") || inner.starts_with("encoder."))) return;
    if (!names_.contains(inner)) Add(line, name, WithNear(Cat(Quoted(inner), " is no number here"), inner));
  }

  string WithNear(string message, const string& wrong, const std::set<string>* known = nullptr) const {
    const std::set<string>& from = known ? *known : names_;
    const string near = NearNameHelp(wrong, std::vector<string>(from.begin(), from.end()));
    return near.empty() ? message : Cat(message, "; ", near);
  }

  const DialectSet& all_;
  const Dialect& dialect_;
  const ModelStatement& statement_;
  TextProblems& problems_;
  std::set<string> keys_, names_, given_;
  std::set<string> lists_;  // local names of lists
  std::set<string> read_;   // paths
  string letters_;          // of layers that lines say
  bool has_layers_ = false, has_function_ = false;
};

// What is wrong with lines `tensor`, whatever the sizes are. Alternatives have lines in common, each of which is told
// once.
void CheckForms(const FormLines& lines, const ModelStatement* statement, TextProblems& problems) {
  if (statement == nullptr) return;
  std::set<std::pair<int, int>> told;
  for (const StoredForm& form : lines.Forms()) {
    for (TextProblem& problem : DiskTensorsOf(form, Module(), *statement).problems) {
      if (told.emplace(problem.where.line, problem.where.column).second) problems.push_back(std::move(problem));
    }
  }
}

}  // namespace

TextProblems DialectProblems(const DialectSet& dialects, StatementFinder statement_of) {
  TextProblems problems;
  std::set<string> names;
  const auto add = [&](const std::vector<string>& types, const StatedLine& line) {
    for (const string& name : types) {
      if (!names.insert(name).second)
        problems.push_back({PlaceOf(line, name), Cat("two lines `dialect` are of the type ", Quoted(name)), {}});
    }
  };
  for (const Dialect& dialect : dialects.all()) {
    add(dialect.names, dialect.line);
    if (const ModelStatement* statement = statement_of(dialect.kind))
      OneDialect(dialects, dialect, *statement, problems).Check();
    CheckForms(dialect.forms, statement_of(dialect.kind), problems);
    const DialectPart* part = dialect.language();
    const Dialect* language = part == nullptr ? nullptr : dialects.Find(part->dialects.front());
    if (language != nullptr) CheckForms(dialect.language_forms, statement_of(language->kind), problems);
  }
  for (const DialectRefusal& refusal : dialects.refused()) {
    add(refusal.names, refusal.line);
  }
  return problems;
}

}  // namespace planwright
