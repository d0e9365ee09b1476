#include "planner/plan/statement/parse_statement.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/table_text.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

// The items of "[a b]", and of "[2 * a, b]".
std::vector<string> TakeNames(LineReader& line) {
  line.Expect(line.TakeIf('['));
  std::vector<string> names = line.TakeWords();
  line.Expect(line.TakeIf(']'));
  return names;
}

std::vector<Expression> TakeFormulaList(LineReader& line) {
  line.Expect(line.TakeIf('['));
  std::vector<Expression> formulas = line.TakeFormulas();
  line.Expect(line.TakeIf(']'));
  return formulas;
}

class StatementParser {
 public:
  ModelStatement Parse(string_view kind, string_view text) {
    model_.kind = kind;
    for (string& text_line : LogicalLines(text)) {
      LineReader line(std::move(text_line));
      ParseLine(line);
      line.Expect(line.empty());
    }
    return std::move(model_);
  }

 private:
  void ParseLine(LineReader& line) {
    if (line.TakeIf("can")) return ParseCan(line);
    if (line.TakeIf("constant")) return ParseConstant(line);
    if (line.TakeIf("let")) return ParseLet(line);
    if (line.TakeIf("stream")) return ParseStream(line);
    if (line.TakeIf("given")) return ParseGiven(line);
    if (line.TakeIf("gathered")) return ParseGathered(line);
    if (line.TakeIf("size")) return ParseSize(line);
    if (line.TakeIf("file")) return void(file_ = line.Take());
    if (line.TakeIf("piece")) return StartPiece(line);
    line.Expect(piece_ != nullptr);
    if (line.TakeIf("prefix")) return void(piece_->prefix = line.Take());
    if (line.TakeIf("part")) return line.Expect(projection_ = line.TakeIf("projection"));
    if (line.TakeIf("joined")) return ParseWeight(line, StatedWeight::Form::kJoined, std::nullopt);
    if (line.TakeIf("needs")) return ParseNeed(line);
    if (line.TakeIf("inputs")) return void(piece_->inputs = line.TakeWords());
    if (line.TakeIf("outputs")) return void(piece_->outputs = line.TakeWords());
    if (line.TakeIf("counts")) return void(piece_->counts = line.Take());
    if (line.TakeIf("split")) return ParseSplit(line);
    if (line.TakeIf("order")) return ParseOrder(line);
    ParseConditional(line);
  }

  // "[when FORMULA:] WEIGHT, PROBE or COMPUTE"
  void ParseConditional(LineReader& line) {
    std::optional<Expression> when;
    if (line.TakeIf("when")) {
      when = line.TakeFormula();
      line.Expect(line.TakeIf(':'));
    }
    if (line.TakeIf("weight")) return ParseWeight(line, StatedWeight::Form::kWeight, std::move(when));
    if (line.TakeIf("experts")) return ParseWeight(line, StatedWeight::Form::kExperts, std::move(when));
    if (line.TakeIf("buffer")) return ParseWeight(line, StatedWeight::Form::kBuffer, std::move(when));
    if (line.TakeIf("probe")) return ParseProbe(line, std::move(when));
    ParseCompute(line, std::move(when));
  }

  // "has_images" or "carries_loss"
  void ParseCan(LineReader& line) {
    const string word = line.Take();
    line.Expect(word == "has_images" || word == "carries_loss");
    (word == "has_images" ? model_.has_images : model_.carries_loss) = true;
  }

  // "NAME int|real|flag [or 0] [of KIND] [else FORMULA]"
  void ParseConstant(LineReader& line) {
    StatedConstant& constant = model_.constants.emplace_back();
    constant.name = line.Take();
    const string type = line.Take();
    line.Expect(type == "int" || type == "real" || type == "flag");
    constant.real = type == "real";
    constant.flag = constant.or_zero = type == "flag";
    if (line.TakeIf("or")) line.Expect(constant.or_zero = line.TakeIf("0"));
    if (line.TakeIf("of")) constant.of = line.Take()[0];
    if (!line.TakeIf("else")) return;
    constant.otherwise = line.TakeFormula();
    for (const string& name : constant.otherwise->names()) line.Expect(EachHas(name, constant));
  }

  // Whether each module that can lack `constant` has this one, which is stated before it.
  bool EachHas(string_view name, const StatedConstant& constant) const {
    return std::any_of(model_.constants.begin(), model_.constants.end(), [&](const StatedConstant& other) {
      return other.name == name && &other != &constant && !other.otherwise &&
             (other.of == 0 || other.of == constant.of);
    });
  }

  // "NAME = FORMULA"
  void ParseLet(LineReader& line) {
    const string name = line.Take();
    line.Expect(line.TakeIf("="));
    model_.lets.emplace_back(name, line.TakeFormula());
  }

  // "NAME = FORMULA"
  void ParseSize(LineReader& line) {
    const string name = line.Take();
    line.Expect(line.TakeIf("="));
    model_.sizes.emplace_back(name, line.TakeFormula());
  }

  // "[SIZES] [cut DIM over AXES]"
  void ParseSizes(LineReader& line, StatedType& type) {
    line.Expect(line.TakeIf('['));
    do {
      if (line.Peek().starts_with('.')) {
        type.sizes.emplace_back(line.Take().substr(1));
      } else {
        type.sizes.emplace_back(line.TakeFormula());
      }
    } while (line.TakeIf(','));
    line.Expect(line.TakeIf(']'));
    if (!line.TakeIf("cut")) return;
    type.cut = static_cast<int>(line.TakeNumber());
    line.Expect(type.cut < static_cast<int>(type.sizes.size()) && line.TakeIf("over"));
    while (const auto axis = AxisFromName(line.Peek())) {
      type.over.push_back(*axis);
      line.Take();
    }
    line.Expect(!type.over.empty());
  }

  // "[SIZES] cut DIM over AXES [zigzag]"
  void ParseStream(LineReader& line) {
    line.Expect(model_.stream.sizes.empty());
    ParseSizes(line, model_.stream);
    model_.stream.learns = true;
    model_.zigzag = line.TakeIf("zigzag");
  }

  // "NAME [DTYPE] [host] [SIZES] [cut DIM over AXES] [learns]"
  void ParseGiven(LineReader& line) {
    const auto [given, fresh] = model_.given.try_emplace(line.Take());
    line.Expect(fresh);
    StatedType& type = given->second;
    type.dtype = DTypeFromName(line.Peek());
    if (type.dtype) line.Take();
    type.host = line.TakeIf("host");
    ParseSizes(line, type);
    type.learns = line.TakeIf("learns");
  }

  // "SYMBOL WHOLE"
  void ParseGathered(LineReader& line) {
    const string part = line.Take();
    model_.gathered.emplace_back(part, line.Take());
  }

  // "VALUE NAMES"
  void ParseSplit(LineReader& line) {
    const auto [parts, fresh] = piece_->parts.try_emplace(line.Take());
    line.Expect(fresh);
    parts->second = line.TakeWords();
  }

  // "VALUE NAME"
  void ParseProbe(LineReader& line, std::optional<Expression> when) {
    StatedProbe& probe = piece_->probes.emplace_back();
    probe.value = line.Take();
    probe.name = line.Take();
    probe.when = std::move(when);
  }

  // "overlap forward|backward: INSTRUCTIONS"
  void ParseOrder(LineReader& line) {
    line.Expect(line.TakeIf("overlap"));
    const bool forward = line.TakeIf("forward");
    line.Expect((forward || line.TakeIf("backward")) && line.TakeIf(':'));
    std::vector<string>& order = forward ? piece_->overlap_forward : piece_->overlap_backward;
    line.Expect(order.empty());
    order = line.TakeWords();
    for (const string& entry : order) line.Expect(OpFromName(entry.substr(0, entry.find('.'))).has_value());
  }

  void StartPiece(LineReader& line) {
    const string name = line.Take();
    line.Expect(name == "embed" || name == "head" || name.size() == 1);
    piece_ = name == "embed" ? &model_.embed : name == "head" ? &model_.head : &model_.layers[name[0]];
    projection_ = false;
  }

  // "SLOT NAME [SIZES] [cut DIM [segments [SIZES]|padded]] DRAW"
  void ParseWeight(LineReader& line, StatedWeight::Form form, std::optional<Expression> when) {
    StatedWeight weight{
        .form = form, .slot = line.Take(), .name = line.Take(), .file_prefix = file_, .projection = projection_};
    weight.shape = TakeFormulaList(line);
    if (line.TakeIf("cut")) weight.cut = static_cast<int>(line.TakeNumber());
    if (line.TakeIf("segments")) weight.segments = TakeFormulaList(line);
    if (line.TakeIf("padded")) line.Expect(weight.padded = weight.cut == 0 && form == StatedWeight::Form::kWeight);
    const auto draw = InitKindFromName(line.Take());
    line.Expect(draw.has_value());
    weight.draw = *draw;
    if (!line.empty()) weight.numbers = TakeFormulaList(line);
    line.Expect(weight.cut < static_cast<int>(weight.shape.size()));
    const bool joined = form == StatedWeight::Form::kJoined;
    line.Expect(!joined || !piece_->weights.empty());
    weight.when = joined ? piece_->weights.back().when : std::move(when);
    piece_->weights.push_back(std::move(weight));
  }

  // "SIZE multiple of CONSTANT [called TEXT]", "SIZE at most SIZE" or
  // "AXIS [x AXIS ...] divides CONSTANT [or is a multiple]"
  void ParseNeed(LineReader& line) {
    using enum StatedNeed::Relation;
    std::vector<Axis> axes;
    while (const auto axis = AxisFromName(line.Peek())) {
      axes.push_back(*axis);
      line.Take();
      if (line.TakeIf("divides")) break;
      line.Expect(line.TakeIf("x"));
    }
    StatedNeed need{.relation = kDivides, .axes = std::move(axes), .left = line.TakeFormula()};
    if (!need.axes.empty() && line.TakeIf("or")) {
      line.Expect(line.TakeIf("is") && line.TakeIf("a") && line.TakeIf("multiple"));
      need.relation = kDividesOrMultiple;
    }
    if (need.axes.empty()) {
      const bool multiple = line.TakeIf("multiple");
      need.relation = multiple ? kMultiple : kAtMost;
      line.Expect(multiple ? line.TakeIf("of") : line.TakeIf("at") && line.TakeIf("most"));
      need.right = line.TakeFormula();
      if (line.TakeIf("called")) need.called = line.Rest();
    }
    piece_->needs.push_back(std::move(need));
  }

  // "[each] OUTPUTS = OP INPUTS [SLOTS] ATTRIBUTE VALUE ..."
  void ParseCompute(LineReader& line, std::optional<Expression> when) {
    StatedCompute& compute = piece_->computes.emplace_back();
    compute.when = std::move(when);
    compute.each = line.TakeIf("each");
    while (!line.TakeIf("=")) compute.outputs.push_back(line.Take());
    compute.kind = line.TakeKind();
    compute.inputs = line.TakeWords();
    if (line.empty()) return;
    compute.slots = TakeNames(line);
    while (!line.empty()) {
      const string setting = line.Take();
      compute.settings.emplace_back(setting, line.Take());
    }
  }

  ModelStatement model_;
  // What the lines so far have set for the lines after them.
  StatedPiece* piece_ = nullptr;
  string file_;
  bool projection_ = false;
};

}  // namespace

ModelStatement ParseStatement(string_view kind, string_view text) { return StatementParser().Parse(kind, text); }

}  // namespace planwright
