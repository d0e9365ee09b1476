#include "planner/verify/model_statement/model_statement.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "planner/diagnostics/bug.h"
#include "planner/plan/limits.h"
#include "planner/plan/plan.h"
#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

// A line of a statement; words are taken from its front. A line that does not parse is a bug of the statement.
class LineWords {
 public:
  explicit LineWords(const string& text) : rest_(absl::StripAsciiWhitespace(text)), line_(text) {}

  bool empty() const { return rest_.empty(); }
  string Peek() const { return rest_.substr(0, rest_.find(' ')); }
  string Take() {
    Expect(!rest_.empty());
    string word = Peek();
    Drop(word.size());
    return word;
  }
  bool TakeIf(const char* word) {
    if (Peek() != word) return false;
    Drop(Peek().size());
    return true;
  }
  std::vector<string> All() { return absl::StrSplit(Rest(), ' ', absl::SkipEmpty()); }
  string Rest() { return std::exchange(rest_, ""); }
  // The items of "[a b]".
  std::vector<string> List(char separator) {
    const size_t close = rest_.find(']');
    Expect(rest_[0] == '[' && close != string::npos);
    std::vector<string> items = absl::StrSplit(rest_.substr(1, close - 1), separator, absl::SkipWhitespace());
    Drop(close + 1);
    return items;
  }
  std::vector<Expression> Formulas() {
    std::vector<Expression> formulas;
    for (const string& text : List(',')) formulas.emplace_back(text);
    return formulas;
  }
  void Expect(bool holds) const { Require(holds, "statement of a model: " + line_); }

 private:
  void Drop(size_t size) { rest_ = string(absl::StripAsciiWhitespace(rest_.substr(size))); }

  string rest_, line_;
};

class StatementParser {
 public:
  ModelStatement Parse(const char* kind, const char* text) {
    model_.kind = kind;
    std::vector<string> lines;
    for (const string& line : std::vector<string>(absl::StrSplit(text, '\n', absl::SkipWhitespace()))) {
      if (LineWords(line).Peek() == "#") continue;
      if (line.starts_with("    ")) {
        lines.back() += line;
      } else {
        lines.push_back(line);
      }
    }
    for (const string& line : lines) ParseLine(line);
    return std::move(model_);
  }

 private:
  void ParseLine(const string& line) {
    LineWords words(line);
    if (words.TakeIf("can")) return ParseCan(words);
    if (words.TakeIf("constant")) return ParseConstant(words);
    if (words.TakeIf("let")) return ParseLet(words);
    if (words.TakeIf("file")) return void(file_ = words.Take());
    if (words.TakeIf("piece")) return StartPiece(words);
    words.Expect(piece_ != nullptr);
    if (words.TakeIf("prefix")) return void(piece_->prefix = words.Take());
    if (words.TakeIf("part")) return words.Expect(projection_ = words.Take() == "projection");
    if (words.TakeIf("weight")) return ParseWeight(words, StatedWeight::Form::kWeight);
    if (words.TakeIf("joined")) return ParseWeight(words, StatedWeight::Form::kJoined);
    if (words.TakeIf("experts")) return ParseWeight(words, StatedWeight::Form::kExperts);
    if (words.TakeIf("buffer")) return ParseWeight(words, StatedWeight::Form::kBuffer);
    if (words.TakeIf("flops")) return void(piece_->flops.emplace(words.Rest()));
    if (words.TakeIf("mixing")) return void(piece_->mixing.emplace(words.Rest()));
    if (words.TakeIf("inputs")) return void(piece_->inputs = words.All());
    if (words.TakeIf("outputs")) return void(piece_->outputs = words.All());
    if (words.TakeIf("counts")) return void(piece_->counts = words.Take());
    if (words.TakeIf("reshard")) return void(piece_->reshards.push_back(words.Formulas()));
    ParseCompute(line);
  }

  // "has_images" or "carries_loss"
  void ParseCan(LineWords& words) {
    const string word = words.Take();
    words.Expect(word == "has_images" || word == "carries_loss");
    (word == "has_images" ? model_.has_images : model_.carries_loss) = true;
  }

  // "NAME int|real|flag [or 0] [of KIND]"
  void ParseConstant(LineWords& words) {
    StatedConstant& constant = model_.constants.emplace_back();
    constant.name = words.Take();
    const string type = words.Take();
    words.Expect(type == "int" || type == "real" || type == "flag");
    constant.real = type == "real";
    constant.flag = constant.or_zero = type == "flag";
    if (words.TakeIf("or")) words.Expect(constant.or_zero = words.TakeIf("0"));
    if (words.TakeIf("of")) constant.of = words.Take()[0];
  }

  // "NAME = FORMULA"
  void ParseLet(LineWords& words) {
    const string name = words.Take();
    words.Expect(words.TakeIf("="));
    model_.lets.emplace_back(name, Expression(words.Rest()));
  }

  void StartPiece(LineWords& words) {
    const string name = words.Take();
    words.Expect(name == "embed" || name == "head" || name.size() == 1);
    piece_ = name == "embed" ? &model_.embed : name == "head" ? &model_.head : &model_.layers[name[0]];
    projection_ = false;
  }

  // "SLOT NAME [SIZES] [cut DIM [segments [SIZES]]] DRAW"
  void ParseWeight(LineWords& words, StatedWeight::Form form) {
    StatedWeight weight{
        .form = form, .slot = words.Take(), .name = words.Take(), .file_prefix = file_, .projection = projection_};
    weight.shape = words.Formulas();
    if (words.TakeIf("cut")) weight.cut = words.Take()[0] - '0';
    if (words.TakeIf("segments")) weight.segments = words.Formulas();
    const auto draw = InitKindFromName(words.Take());
    words.Expect(draw.has_value());
    weight.draw = *draw;
    if (!words.empty()) weight.numbers = words.Formulas();
    words.Expect(words.empty() && weight.cut < static_cast<int>(weight.shape.size()));
    piece_->weights.push_back(std::move(weight));
  }

  // "[when FORMULA:] [each] OUTPUTS = OP INPUTS [SLOTS] ATTRIBUTE VALUE ..."
  void ParseCompute(const string& line) {
    StatedCompute& compute = piece_->computes.emplace_back();
    LineWords words(line);
    if (words.TakeIf("when")) {
      const string rest = words.Rest();
      const size_t colon = rest.find(':');
      words.Expect(colon != string::npos);
      compute.when.emplace(rest.substr(0, colon));
      words = LineWords(rest.substr(colon + 1));
    }
    compute.each = words.TakeIf("each");
    while (!words.TakeIf("=")) compute.outputs.push_back(words.Take());
    const auto kind = OpFromName(words.Take());
    words.Expect(kind.has_value());
    compute.kind = *kind;
    while (!words.empty() && words.Peek()[0] != '[') compute.inputs.push_back(words.Take());
    if (!words.empty()) compute.slots = words.List(' ');
    while (!words.empty()) {
      const string setting = words.Take();
      compute.settings.emplace_back(setting, words.Take());
    }
  }

  ModelStatement model_;
  // What the lines so far have set for the lines after them.
  StatedPiece* piece_ = nullptr;
  string file_;
  bool projection_ = false;
};

}  // namespace

// The texts are parsed once in a process, at the first use.
const ModelStatement* StatementOf(string_view kind) {
  static const std::vector<ModelStatement> statements = {
#define MODEL(kind, text) StatementParser().Parse(kind, text),
#include "planner/verify/model_statement/hybrid_lm.def"
#include "planner/verify/model_statement/radio_vit.def"
#undef MODEL
  };
  for (const ModelStatement& statement : statements) {
    if (statement.kind == kind) return &statement;
  }
  return nullptr;
}

ModelNumbers::ModelNumbers(const Plan& plan, const Module& module, const ModelStatement& statement) {
  for (const auto& [name, value] : module.constants) {
    if (const int64_t* integer = std::get_if<int64_t>(&value)) numbers_[name] = static_cast<double>(*integer);
    if (const double* real = std::get_if<double>(&value)) numbers_[name] = *real;
  }
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp, Axis::kExpertTp, Axis::kEp, Axis::kExpertDp}) {
    numbers_[string(AxisName(axis))] = module.grid.size(axis);
  }
  numbers_["trains_backbone"] = module.trains_backbone ? 1 : 0;
  numbers_["gathers_tokens"] = module.gathers_tokens() ? 1 : 0;
  numbers_["layers"] = static_cast<double>(module.layers.size());
  numbers_["sequence"] = static_cast<double>(plan.budget.sequence_length);
  // Means of the data section, which FLOPs of an encoder are averages over. Attention costs the square of an image's
  // tokens.
  if (statement.has_images) {
    double patches = 0, tokens = 0, squared = 0;
    const EncoderData* encoder = plan.data.FindEncoder(module.name);
    for (int64_t count :
         ImagesOfSample(plan.data, encoder ? *encoder : EncoderData(), plan.budget.sequence_length).patches) {
      const double rows = static_cast<double>(count + module.size("class_tokens"));
      patches += static_cast<double>(count);
      tokens += rows;
      squared += rows * rows;
    }
    numbers_["image_patches"] = patches;
    numbers_["image_tokens"] = tokens;
    numbers_["image_tokens_squared"] = squared;
  }
  // In the order of the statement, since a formula may use earlier names.
  for (const auto& [name, formula] : statement.lets) numbers_[name] = Of(formula);
}

double ModelNumbers::operator()(string_view name) const {
  // Expression hands over a call such as sqrt(hidden) as one name.
  constexpr string_view kRoot = "sqrt(";
  if (name.starts_with(kRoot)) return std::sqrt((*this)(name.substr(kRoot.size(), name.size() - kRoot.size() - 1)));
  const auto it = numbers_.find(name);
  return it == numbers_.end() ? std::numeric_limits<double>::quiet_NaN() : it->second;
}

int64_t ModelNumbers::SizeOf(const Expression& formula) const {
  const double value = Of(formula);
  const bool fits = value >= 0 && value <= static_cast<double>(kLargestNumber);  // false for NaN
  return fits ? static_cast<int64_t>(value) : -1;
}

std::vector<int64_t> ModelNumbers::SizesOf(const std::vector<Expression>& formulas) const {
  std::vector<int64_t> sizes;
  for (const Expression& formula : formulas) sizes.push_back(SizeOf(formula));
  return sizes;
}

}  // namespace planwright
