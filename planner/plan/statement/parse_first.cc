#include "planner/plan/statement/parse_first.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/resize_words.h"
#include "planner/plan/statement/take_words.h"
#include "planner/plan/statement/whole_value.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;
using Form = StatedKey::Form;
using Type = StatedKey::Type;

// The width of the language model, which a first recipe knows.
constexpr char kOutputWidth[] = "output.hidden";

// A recipe's name of a module has no more letters (planner/recipe/key_checks.cc).
constexpr size_t kLongestModule = 64;

// Whether some reader of YAML takes this word for no text: nothing, a flag, or a number.
bool IsOtherInYaml(const string& word) {
  static constexpr string_view kWords[] = {"null", "true", "false", "yes", "no",  "on",
                                           "off",  "y",    "n",     "inf", "nan", "infinity"};
  const string lower = absl::AsciiStrToLower(word);
  return std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
}

// "NAME"
void ParseModule(LineReader& line, ModelStatement& model) {
  line.Check(!model.first_module_line, "the name of the module is there twice");
  model.first_module_line = line.line();
  model.first_module = TakeName(line, "the name of the module");
  line.Check(model.first_module.find('.') == string::npos, "the name of a module has no dot");
  line.Check(model.first_module.size() <= kLongestModule,
             Cat("the name of a module has at most ", kLongestModule, " letters"));
  line.Check(!IsOtherInYaml(model.first_module),
             Cat(Quoted(model.first_module), " is another word of YAML, and no name in a recipe"));
  line.Check(model.first_module != "language", "`language` is the module of the language model");
}

// One of `words`, behind the key of `data` of that name.
template <size_t count>
string TakeDataWord(LineReader& line, const char* key, const string_view (&words)[count]) {
  line.Need(key);
  string word = line.Take(Cat("a word of data.", key));
  if (!line.failed() && std::find(std::begin(words), std::end(words), word) == std::end(words))
    line.RefuseWord(Cat(Quoted(word), " is no word of data.", key),
                    std::vector<string>(std::begin(words), std::end(words)));
  return word;
}

// "resize RESIZE grid GRID [from PIXELS] [or processor]"
void ParseImages(LineReader& line, ModelStatement& model) {
  line.Check(!model.first_images, "how images are made is there twice");
  StatedImages images;
  images.line = line.line();
  images.resize = TakeDataWord(line, "resize", kResizeWords);
  images.grid = TakeDataWord(line, "grid", kGridWords);
  if (line.TakeIf("from")) {
    line.Check(images.grid != "square", "squares have one size, and no least one");
    images.least_pixels = static_cast<int64_t>(line.TakeNumber());
    line.Check(line.failed() || images.least_pixels > 0, "an image has a pixel at least");
  }
  if (line.TakeIf("or")) {
    line.Need("processor");
    images.processor = true;
  }
  model.first_images = std::move(images);
}

// Whether every recipe has this whole number: a key of the kind that is required, or has a default.
bool IsInEachRecipe(const ModelStatement& model, string_view name) {
  const StatedKey* key = model.FindKey(name);
  if (!key || key->type != Type::kInteger || (key->form != Form::kConstant && key->form != Form::kNumber)) return false;
  const auto of_layers = [&](const StatedConstant& constant) { return constant.name == name && constant.of != 0; };
  return (key->required || !key->default_text.empty()) &&
         std::none_of(model.constants.begin(), model.constants.end(), of_layers);
}

// "KEY is FORMULA|WORD"
void ParseKey(LineReader& line, ModelStatement& model) {
  StatedFirst first;
  first.line = line.line();
  first.key = TakeName(line, "`module`, `images` or a key of the recipe");
  if (line.failed()) return;
  const StatedKey* key = model.FindKey(first.key);
  const bool choice = key && key->form == Form::kChoice;
  if (!choice && !IsInEachRecipe(model, first.key)) {
    std::vector<string> known = {"module", "images"};
    for (const StatedKey& each : model.keys) {
      if (each.form == Form::kChoice || IsInEachRecipe(model, each.name)) known.push_back(each.name);
    }
    return line.RefuseWord(
        Cat(Quoted(first.key), " is neither a choice nor a whole number that a line before it says of each recipe"),
        known);
  }
  const auto same = [&](const StatedFirst& other) { return other.key == first.key; };
  line.Check(std::none_of(model.firsts.begin(), model.firsts.end(), same), "the key is there twice");
  // What the lines say does not depend on their order.
  const auto reads = [&](const StatedFirst& other) {
    const std::vector<string> none;
    const std::vector<string>& names = other.formula ? other.formula->names() : none;
    return std::find(names.begin(), names.end(), first.key) != names.end();
  };
  line.Check(std::none_of(model.firsts.begin(), model.firsts.end(), reads),
             Cat("the formula of another line `first` is over ", first.key));
  line.Need("is");
  if (choice) {
    first.word = line.Take("a word of the choice");
    std::vector<string> words;
    for (const auto& [word, number] : key->words) words.push_back(word);
    if (!line.failed() && std::find(words.begin(), words.end(), first.word) == words.end())
      line.RefuseWord(Cat(Quoted(first.word), " is no word of the choice ", first.key), words);
  } else {
    first.formula = line.TakeFormula();
    for (const string& name : first.formula->names()) {
      line.Check(name == kOutputWidth || (name != first.key && IsInEachRecipe(model, name)),
                 Cat(Quoted(name), " is neither ", kOutputWidth,
                     " nor another whole number that a line before it says of each recipe"));
    }
    for (const string& name : first.formula->names()) {
      line.Check(std::none_of(model.firsts.begin(), model.firsts.end(),
                              [&](const StatedFirst& other) { return other.key == name; }),
                 Cat(Quoted(name), " is what another line `first` says"));
    }
    if (!line.failed() && first.formula->names().empty()) {
      const std::optional<int64_t> whole = WholeValue(first.formula->Evaluate([](const string&) { return 0.0; }));
      line.Check(whole.has_value(), "the formula is no whole number");
      line.Check(whole && key->range.Holds(static_cast<double>(*whole)),
                 "the number is outside of the range of the key");
    }
  }
  model.firsts.push_back(std::move(first));
}

}  // namespace

void ParseFirst(LineReader& line, ModelStatement& model) {
  line.Check(model.has_images, "a first recipe asks this of a model that has_images alone");
  if (line.TakeIf("module")) return ParseModule(line, model);
  if (line.TakeIf("images")) return ParseImages(line, model);
  ParseKey(line, model);
}

}  // namespace planwright
