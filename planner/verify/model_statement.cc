#include "planner/verify/model_statement.h"

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

// The words of a line, taken from its front.
class Words {
 public:
  explicit Words(const string& text) : rest_(absl::StripAsciiWhitespace(text)), line_(text) {}

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
  // "[a b]"; `separator`: between what is in it.
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

class Parser {
 public:
  ModelStatement Parse(const char* kind, const char* text) {
    model_.kind = kind;
    for (const string& line : std::vector<string>(absl::StrSplit(text, '\n', absl::SkipWhitespace()))) {
      if (Words(line).Peek() != "#") Line(line);
    }
    return std::move(model_);
  }

 private:
  void Line(const string& line) {
    Words words(line);
    if (words.TakeIf("can")) return Can(words);
    if (words.TakeIf("constant")) return Constant(words);
    if (words.TakeIf("let")) return Let(words);
    if (words.TakeIf("file")) return void(file_ = words.Take());
    if (words.TakeIf("piece")) return Piece(words);
    words.Expect(piece_ != nullptr);
    if (words.TakeIf("prefix")) return void(piece_->prefix = words.Take());
    if (words.TakeIf("part")) return words.Expect(projection_ = words.Take() == "projection");
    if (words.TakeIf("weight")) return Weight(words, StatedWeight::Form::kWeight);
    if (words.TakeIf("joined")) return Weight(words, StatedWeight::Form::kJoined);
    if (words.TakeIf("experts")) return Weight(words, StatedWeight::Form::kExperts);
    if (words.TakeIf("buffer")) return Weight(words, StatedWeight::Form::kBuffer);
    if (words.TakeIf("flops")) return void(piece_->flops.emplace(words.Rest()));
    if (words.TakeIf("mixing")) return void(piece_->mixing.emplace(words.Rest()));
    if (words.TakeIf("inputs")) return void(piece_->inputs = words.All());
    if (words.TakeIf("outputs")) return void(piece_->outputs = words.All());
    if (words.TakeIf("counts")) return void(piece_->counts = words.Take());
    if (words.TakeIf("reshard")) return void(piece_->reshards.push_back(words.Formulas()));
    Compute(line);
  }

  void Can(Words& words) {
    const string word = words.Take();
    words.Expect(word == "has_images" || word == "carries_loss");
    (word == "has_images" ? model_.has_images : model_.carries_loss) = true;
  }

  void Constant(Words& words) {
    StatedConstant& constant = model_.constants.emplace_back();
    constant.name = words.Take();
    const string type = words.Take();
    words.Expect(type == "int" || type == "real");
    constant.real = type == "real";
    if (words.TakeIf("or")) words.Expect(constant.or_zero = words.TakeIf("0"));
    if (words.TakeIf("of")) constant.of = words.Take()[0];
  }

  void Let(Words& words) {
    const string name = words.Take();
    words.Expect(words.TakeIf("="));
    model_.lets.emplace_back(name, Expression(words.Rest()));
  }

  void Piece(Words& words) {
    const string name = words.Take();
    words.Expect(name == "embed" || name == "head" || name.size() == 1);
    piece_ = name == "embed" ? &model_.embed : name == "head" ? &model_.head : &model_.layers[name[0]];
    projection_ = false;
  }

  void Weight(Words& words, StatedWeight::Form form) {
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

  void Compute(const string& line) {
    StatedCompute& compute = piece_->computes.emplace_back();
    Words words(line);
    if (words.TakeIf("when")) {
      const string rest = words.Rest();
      const size_t colon = rest.find(':');
      words.Expect(colon != string::npos);
      compute.when.emplace(rest.substr(0, colon));
      words = Words(rest.substr(colon + 1));
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
  StatedPiece* piece_ = nullptr;
  string file_;
  bool projection_ = false;
};

}  // namespace

const ModelStatement* StatementOf(string_view kind) {
  static const std::vector<ModelStatement> statements = {
#define MODEL(kind, text) Parser().Parse(kind, text),
#include "planner/verify/hybrid_lm.def"
#include "planner/verify/radio_vit.def"
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
  numbers_["layers"] = static_cast<double>(module.layers.size());
  numbers_["sequence"] = static_cast<double>(plan.budget.sequence_length);
  if (statement.has_images) {
    double patches = 0, tokens = 0, squared = 0;
    for (int64_t count : ImagesOfSample(plan.data, plan.budget.sequence_length).patches) {
      const double rows = static_cast<double>(count + module.size("class_tokens"));
      patches += static_cast<double>(count);
      tokens += rows;
      squared += rows * rows;
    }
    numbers_["image_patches"] = patches;
    numbers_["image_tokens"] = tokens;
    numbers_["image_tokens_squared"] = squared;
  }
  for (const auto& [name, formula] : statement.lets) numbers_[name] = Of(formula);
}

double ModelNumbers::operator()(string_view name) const {
  constexpr string_view kRoot = "sqrt(";
  if (name.starts_with(kRoot)) return std::sqrt((*this)(name.substr(kRoot.size(), name.size() - kRoot.size() - 1)));
  const auto it = numbers_.find(name);
  return it == numbers_.end() ? std::numeric_limits<double>::quiet_NaN() : it->second;
}

int64_t ModelNumbers::SizeOf(const Expression& formula) const {
  const double value = Of(formula);
  const bool fits = value >= 0 && value <= static_cast<double>(kLargestNumber);  // false of NaN
  return fits ? static_cast<int64_t>(value) : -1;
}

std::vector<int64_t> ModelNumbers::SizesOf(const std::vector<Expression>& formulas) const {
  std::vector<int64_t> sizes;
  for (const Expression& formula : formulas) sizes.push_back(SizeOf(formula));
  return sizes;
}

}  // namespace planwright
