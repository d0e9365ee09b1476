#include "planner/plan/statement/parse_piece.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/statement/take_words.h"

namespace planwright {
namespace {

using std::string;

// The words that a line can begin with, of a piece or before one.
const std::vector<string>& FirstWords() {
  static const std::vector<string> words = {"kind",    "layer",    "unbuilt", "layers", "section", "choice",   "key",
                                            "can",     "constant", "let",     "stream", "given",   "gathered", "size",
                                            "file",    "piece",    "prefix",  "part",   "joined",  "shared",   "needs",
                                            "inputs",  "outputs",  "counts",  "split",  "order",   "when",     "weight",
                                            "experts", "buffer",   "probe",   "each",   "pixels",  "carry"};
  return words;
}

bool CutsSizes(Axis axis) {
  return axis == Axis::kTp || axis == Axis::kCp || axis == Axis::kEp || axis == Axis::kExpertTp;
}

Init::Kind TakeDraw(LineReader& line) {
  const string word = line.Take("how the weight is drawn");
  const std::optional<Init::Kind> draw = InitKindFromName(word);
  if (!draw && !line.failed())
    line.RefuseWord(Cat(Quoted(word), " is no draw"), {"zeros", "ones", "normal", "uniform", "log_uniform", "dt_bias"});
  return draw.value_or(Init::Kind::kZeros);
}

void CheckCount(LineReader& line, const std::vector<string>& names) {
  line.Check(names.size() <= kMostListedNames, Cat("a line lists at most ", kMostListedNames, " names"));
}

}  // namespace

void PieceParser::Start(StatedPiece* piece, const LineReader& line) {
  unnamed_ = {};
  piece_ = piece ? piece : &unnamed_;
  piece_->line = line.line();
  projection_ = false;
}

void PieceParser::ParseLine(LineReader& line) {
  if (!piece_) {
    const string word = line.Take("a word of the notation");
    const std::vector<string>& words = FirstWords();
    const bool known = std::find(words.begin(), words.end(), word) != words.end();
    return line.RefuseWord(Cat(Quoted(word), " begins a line of a piece, and no line `piece` is before it"),
                           known ? std::vector<string>() : words);
  }
  if (line.TakeIf("prefix")) {
    piece_->prefix_line = line.line();
    return void(piece_->prefix = line.Take("a prefix of names"));
  }
  if (line.TakeIf("part")) {
    line.Need("projection");
    return void(projection_ = true);
  }
  if (line.TakeIf("joined")) return ParseJoined(line);
  if (line.TakeIf("inputs")) return ParseValues(line, piece_->inputs, piece_->inputs_line);
  if (line.TakeIf("outputs")) return ParseValues(line, piece_->outputs, piece_->outputs_line);
  if (line.TakeIf("counts")) return ParseCounts(line);
  if (line.TakeIf("split")) return ParseSplit(line);
  if (line.TakeIf("order")) return ParseOrder(line);
  ParseConditional(line);
}

// "[when FORMULA:] WEIGHT, SHARED, NEED, PROBE or COMPUTE"
void PieceParser::ParseConditional(LineReader& line) {
  std::optional<Expression> when;
  if (line.TakeIf("when")) {
    when = line.TakeFormula();
    line.Need(':');
  }
  if (line.TakeIf("weight")) return ParseWeight(line, StatedWeight::Form::kWeight, std::move(when));
  if (line.TakeIf("experts")) return ParseWeight(line, StatedWeight::Form::kExperts, std::move(when));
  if (line.TakeIf("buffer")) return ParseWeight(line, StatedWeight::Form::kBuffer, std::move(when));
  if (line.TakeIf("shared")) return ParseShared(line, std::move(when));
  if (line.TakeIf("needs")) return ParseNeed(line, std::move(when));
  if (line.TakeIf("probe")) return ParseProbe(line, std::move(when));
  ParseCompute(line, std::move(when));
}

void PieceParser::ParseWeight(LineReader& line, StatedWeight::Form form, std::optional<Expression> when) {
  StatedWeight weight{.form = form};
  weight.when = std::move(when);
  AddWeight(line, std::move(weight));
}

// It is there where the weight is that it is joined to, and of its form.
void PieceParser::ParseJoined(LineReader& line) {
  line.Check(!piece_->weights.empty(), "a weight is joined to the one before it, and there is none");
  StatedWeight weight{.joined = true};
  if (!piece_->weights.empty()) {
    weight.form = piece_->weights.back().form;
    weight.when = piece_->weights.back().when;
  }
  AddWeight(line, std::move(weight));
}

// "SLOT NAME [SIZES] [cut DIM [segments [SIZES]|padded]] DRAW"
void PieceParser::AddWeight(LineReader& line, StatedWeight weight) {
  weight.file_prefix = file_;
  weight.projection = projection_;
  weight.line = line.line();
  weight.slot = TakeName(line, "the name of a slot");
  weight.name = line.Take("the published name of the weight");
  weight.shape = TakeFormulaList(line);
  if (line.TakeIf("cut")) weight.cut = TakeDim(line, weight.shape.size());
  if (line.TakeIf("segments")) {
    line.Check(weight.cut >= 0, "`segments` are those of a cut: expected `cut DIM` before it");
    weight.segments = TakeFormulaList(line);
  }
  if (line.TakeIf("padded")) {
    line.Check(weight.cut == 0 && weight.form == StatedWeight::Form::kWeight && !weight.joined,
               "`padded` is of a plain weight that is cut along dim 0");
    weight.padded = true;
  }
  weight.draw = TakeDraw(line);
  if (!line.empty()) weight.numbers = TakeFormulaList(line);
  piece_->weights.push_back(std::move(weight));
  line.Check(piece_->weights.size() <= kMostPieceWeights, Cat("a piece has at most ", kMostPieceWeights, " weights"));
}

// "SLOT = embed.SLOT"
void PieceParser::ParseShared(LineReader& line, std::optional<Expression> when) {
  constexpr std::string_view kEmbed = "embed.";
  StatedShare& share = piece_->shared.emplace_back();
  share.line = line.line();
  share.slot = TakeName(line, "the name of a slot");
  line.Need("=");
  const string of = TakeName(line, "`embed.` and a slot of the embedding");
  line.Check(line.failed() || of.starts_with(kEmbed),
             Cat(Quoted(of), " is no slot of the embedding: expected `embed.` and its name"));
  share.of = of.substr(std::min(of.size(), kEmbed.size()));
  share.when = std::move(when);
  line.Check(piece_->shared.size() <= kMostPieceWeights, Cat("a piece has at most ", kMostPieceWeights, " weights"));
}

// "SIZE multiple of CONSTANT|NUMBER [called TEXT]", "SIZE at most SIZE", "AXIS at most NUMBER" or
// "AXIS [x AXIS ...] divides CONSTANT [or is a multiple]"
void PieceParser::ParseNeed(LineReader& line, std::optional<Expression> when) {
  using enum StatedNeed::Relation;
  StatedNeed need{.relation = kDivides, .left = Expression::Nothing(), .when = std::move(when), .line = line.line()};
  while (const auto axis = AxisFromName(line.Peek())) {
    need.axes.push_back(*axis);
    line.Take();
    if (need.axes.size() == 1 && line.Peek() == "at") {
      line.Check(CutsSizes(*axis) || *axis == Axis::kPp, Cat("no recipe says how large ", AxisName(*axis), " is"));
      for (const char* word : {"at", "most"}) line.Need(word);
      need.relation = kAxisAtMost;
      need.right = line.TakeFormula();
      return piece_->needs.push_back(std::move(need));
    }
    line.Check(CutsSizes(*axis), Cat("no size is cut over ", AxisName(*axis)));
    if (line.TakeIf("divides")) break;
    line.Need("x");
  }
  need.left = line.TakeFormula();
  if (!need.axes.empty() && line.TakeIf("or")) {
    for (const char* word : {"is", "a", "multiple"}) line.Need(word);
    need.relation = kDividesOrMultiple;
  }
  if (need.axes.empty()) {
    const bool multiple = line.TakeOneOf({"multiple", "at"}) == "multiple";
    need.relation = multiple ? kMultiple : kAtMost;
    line.Need(multiple ? "of" : "most");
    need.right = line.TakeFormula();
    if (line.TakeIf("called")) need.called = line.Rest();
  }
  // Of a line that cannot be read the axes may be such as cut nothing.
  if (!line.failed()) piece_->needs.push_back(std::move(need));
}

void PieceParser::ParseValues(LineReader& line, std::vector<string>& values, StatedLine& at) {
  line.Check(at == nullptr, "the piece has two such lines");
  at = line.line();
  values = line.TakeWords();
  CheckCount(line, values);
}

// "VALUE"
void PieceParser::ParseCounts(LineReader& line) {
  line.Check(piece_->counts_line == nullptr, "the piece has two such lines");
  piece_->counts_line = line.line();
  piece_->counts = line.Take("the value that counts rows");
}

// "VALUE NAMES"
void PieceParser::ParseSplit(LineReader& line) {
  const auto [parts, fresh] = piece_->parts.try_emplace(line.Take("the value that is split"));
  line.Check(fresh, "the value is split twice");
  std::vector<string> names;
  while (!line.Peek().empty()) names.push_back(TakeName(line, "the name of a part"));
  CheckCount(line, names);
  if (fresh) parts->second = std::move(names);
}

// "VALUE NAME"
void PieceParser::ParseProbe(LineReader& line, std::optional<Expression> when) {
  StatedProbe& probe = piece_->probes.emplace_back();
  probe.line = line.line();
  probe.value = line.Take("the value that is probed");
  probe.name = line.Take("the name of the probe");
  probe.when = std::move(when);
}

// "overlap forward|backward: INSTRUCTIONS"
void PieceParser::ParseOrder(LineReader& line) {
  line.Need("overlap");
  const bool forward = line.TakeOneOf({"forward", "backward"}) == "forward";
  std::vector<string>& order = forward ? piece_->overlap_forward : piece_->overlap_backward;
  line.Check(order.empty(), "this order is there twice");
  line.Need(':');
  (forward ? piece_->forward_line : piece_->backward_line) = line.line();
  while (!line.Peek().empty()) {
    order.push_back(line.Take());
    const string kind = order.back().substr(0, order.back().find('.'));
    if (!OpFromName(kind)) line.RefuseWord(Cat(Quoted(kind), " is no operation"), AllOpNames());
  }
  CheckCount(line, order);
}

// "[each] OUTPUTS = OP INPUTS [SLOTS] ATTRIBUTE VALUE ..."
void PieceParser::ParseCompute(LineReader& line, std::optional<Expression> when) {
  if (!line.HasWord("=")) {
    const string word = line.Take("a line of the piece");
    if (line.failed()) return;
    return line.RefuseWord(Cat("no line begins with ", Quoted(word), ", and it is no compute, which has a `=`"),
                           FirstWords());
  }
  StatedCompute& compute = piece_->computes.emplace_back();
  compute.line = line.line();
  compute.when = std::move(when);
  compute.each = line.TakeIf("each");
  while (!line.Peek().empty() && line.Peek() != "=") {
    compute.outputs.push_back(line.Take());
    const string& output = compute.outputs.back();
    const bool starred = output.ends_with('*');
    line.Check(!starred || compute.each, "a value for each encoder is made by a line that begins with `each`");
    CheckName(line, std::string_view(output).substr(0, output.size() - (starred ? 1 : 0)));
  }
  line.Need("=");
  compute.kind = line.TakeKind();
  compute.inputs = line.TakeWords();
  CheckCount(line, compute.outputs);
  CheckCount(line, compute.inputs);
  if (line.empty()) return;
  compute.slots = TakeNames(line);
  CheckCount(line, compute.slots);
  while (!line.empty()) {
    StatedSetting& setting = compute.settings.emplace_back();
    setting.attribute = line.Take("the name of an attribute");
    if (line.Peek().starts_with('(')) setting.formula = TakeFormulaInBrackets(line);
    setting.text = setting.formula ? setting.formula->text() : line.Take("the value of the attribute");
  }
}

}  // namespace planwright
