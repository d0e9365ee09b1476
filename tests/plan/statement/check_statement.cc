#include "tests/plan/statement/check_statement.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/compile/model/expand_statement.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/rank_piece.h"
#include "tests/plan/statement/prime_module.h"

namespace planwright::testing {
namespace {

using std::string;
using Form = StatedWeight::Form;
using Shape = RankPiece::Shape;
using Compute = RankPiece::Compute;

size_t NumbersOfDraw(Init::Kind kind) {
  switch (kind) {
    case Init::Kind::kOnes:
    case Init::Kind::kZeros: return 0;
    case Init::Kind::kNormal: return 1;
    default: return 2;
  }
}

constexpr int64_t kPrimeSequence = 100069;

string Text(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ","), "]"); }

// Judges one piece in one case of what `when` may ask for.
class PieceJudge {
 public:
  PieceJudge(const ModelStatement& statement, const string& name, const StatedPiece& piece, const ModelNumbers& numbers,
             std::set<string>& problems)
      : statement_(statement), piece_(piece), name_(name), numbers_(numbers), problems_(problems),
        ranked_(statement, piece, numbers, kData) {}

  void Judge() {
    for (const string& problem : ranked_.problems()) Problem(problem);
    const string* before = nullptr;
    for (const StatedWeight& weight : piece_.weights) {
      if (weight.form == Form::kJoined && (!before || *before != weight.slot))
        Problem(absl::StrCat("weight ", weight.name, " is joined, and the line before it is of another slot"));
      before = &weight.slot;
      JudgeCondition(weight);
      if (numbers_.Hold(weight.when)) JudgeWeight(weight);
    }
    for (const StatedNeed& need : piece_.needs) JudgeNeed(need);
    if (!problems_.empty()) return;  // what follows asks for shapes that fit
    JudgeUses();
    for (const Compute& compute : ranked_.computes()) {
      JudgeSettings(*compute.stated);
      JudgeAttributes(compute.instruction.kind);
      if (InfoOf(compute.instruction.kind).signature) JudgeParts(compute);
    }
  }

  const RankPiece& ranked() const { return ranked_; }
  bool Reads(const string& value) const { return reads_.contains(value); }

 private:
  // What the data decides: primes too.
  inline static const std::map<string, double> kData = {
      {"samples", 100003}, {"documents", 100019}, {"image_rows*", 100043}, {"images", 100049}, {"patches", 100057}};

  void Problem(const string& text) { problems_.insert(absl::StrCat("piece ", name_, ": ", text)); }

  // Whether a weight is there does not depend on what is trained: checkpoints hold it.
  void JudgeCondition(const StatedWeight& weight) {
    if (!weight.when) return;
    for (const string& name : weight.when->names()) {
      const auto named = [&](const auto& number) { return NameOf(number) == name; };
      if (AxisFromName(name) || std::any_of(statement_.constants.begin(), statement_.constants.end(), named) ||
          std::any_of(statement_.lets.begin(), statement_.lets.end(), named))
        continue;
      Problem(absl::StrCat("weight ", weight.name, " has a condition of ", name, ", which is no constant and no axis"));
    }
  }

  static const string& NameOf(const StatedConstant& constant) { return constant.name; }
  static const string& NameOf(const std::pair<string, Expression>& let) { return let.first; }

  void JudgeWeight(const StatedWeight& weight) {
    const auto problem = [&](const string& text) { Problem(absl::StrCat("weight ", weight.name, " ", text)); };
    if (weight.projection && !statement_.has_images) problem("is of a projection, which only an encoder has");
    std::vector<double> sizes;
    for (const Expression& size : weight.shape) sizes.push_back(numbers_.Of(size));
    for (double size : sizes) {
      if (!(size >= 1) || size != std::floor(size)) problem(absl::StrCat("has the size ", size));
    }
    if (weight.numbers.size() != NumbersOfDraw(weight.draw)) problem("has a draw with another number of numbers");
    for (const Expression& number : weight.numbers) {
      if (!std::isfinite(numbers_.Of(number))) problem(absl::StrCat("has a draw with ", number.text()));
    }
    if (weight.form == Form::kJoined && (weight.cut > 0 || weight.cut != WeightsOf(weight.slot).front()->cut))
      problem("is joined, and not cut as what it is joined to, along the dim of joining");
    if (weight.padded && weight.cut != 0) problem("is padded, and not cut along dim 0");
    if (weight.cut < 0) return;
    const std::vector<double> segments = SegmentsOf(weight);
    if (std::accumulate(segments.begin(), segments.end(), 0.0) != sizes[static_cast<size_t>(weight.cut)])
      problem(absl::StrCat("has segments ", Text(segments), " of another sum"));
    const Axis axis = weight.form == Form::kExperts ? Axis::kExpertTp : Axis::kTp;
    for (double segment : segments) {
      const bool divides = std::fmod(segment, PrimeOf(axis)) == 0;
      if (divides && weight.padded) problem("is padded, though a line needs that tp divides it");
      if (!divides && !weight.padded)
        problem(absl::StrCat("is cut, and no line needs that ", string(AxisName(axis)), " divides it"));
    }
    if (weight.form == Form::kExperts && std::fmod(numbers_("moe.experts"), PrimeOf(Axis::kEp)) != 0)
      problem("is divided over ep, and no line needs that ep divides it");
  }

  void JudgeNeed(const StatedNeed& need) {
    const bool limit = need.right && (need.right->text() == "most_tokens" || need.right->text() == "largest_dim");
    if (std::isnan(numbers_.Of(need.left)) || (need.right && !limit && std::isnan(numbers_.Of(*need.right))))
      Problem(absl::StrCat("needs something of ", need.left.text(), ", which has no value"));
  }

  std::vector<double> SegmentsOf(const StatedWeight& weight) const {
    std::vector<double> segments;
    for (const Expression& segment : weight.segments) segments.push_back(numbers_.Of(segment));
    if (segments.empty()) segments = {numbers_.Of(weight.shape[static_cast<size_t>(weight.cut)])};
    return segments;
  }

  void JudgeUses() {
    std::map<string, int> slots;
    for (const StatedWeight& weight : piece_.weights) {
      if (numbers_.Hold(weight.when)) slots[weight.slot] = 0;
    }
    for (const Compute& compute : ranked_.computes()) {
      for (const string& input : compute.stated->inputs) reads_.insert(input);
      for (const string& slot : compute.stated->slots) ++slots[slot];
    }
    for (const auto& [slot, times] : slots) {
      if (times != 1) Problem(absl::StrCat("slot ", slot, " is read ", times, " times"));
    }
    for (const StatedProbe& probe : piece_.probes) {
      if (numbers_.Hold(probe.when) && !ranked_.shape(probe.value))
        Problem(absl::StrCat("probes ", probe.value, ", which is not there"));
    }
    for (const string& output : piece_.outputs) {
      if (!ranked_.shape(output)) Problem(absl::StrCat("returns ", output, ", which is not there"));
      reads_.insert(output);
    }
    if (!piece_.counts.empty()) reads_.insert(piece_.counts);
    for (const Compute& compute : ranked_.computes()) {
      const std::vector<string>& outputs = compute.stated->outputs;
      if (!outputs.empty() && std::none_of(outputs.begin(), outputs.end(), [&](const string& o) { return Reads(o); }))
        Problem(absl::StrCat("makes ", absl::StrJoin(outputs, ", "), ", which nothing reads"));
    }
  }

  // Where axes divide heads and groups, each rank has whole ones. Sequences are the recipe's, which checks them.
  void JudgeAttributes(OpKind kind) {
    for (const AttributeSpec& spec : InfoOf(kind).attributes) {
      if (spec.source != AttributeSource::kFormula || spec.type != AttributeType::kInteger) continue;
      const std::vector<string>& names = spec.values.front().names();
      const double value = numbers_.Of(spec.values.front());
      if (std::isnan(value) || std::find(names.begin(), names.end(), "sequence") != names.end()) continue;
      if (value != std::floor(value))
        Problem(absl::StrCat(string(OpName(kind)), " has ", spec.name, " ", value,
                             ", and no line needs that axes divide ", names.front()));
    }
  }

  void JudgeSettings(const StatedCompute& compute) {
    for (const auto& [attribute, text] : compute.settings) {
      const AttributeSpec* spec = InfoOf(compute.kind).FindAttribute(attribute);
      const bool follows = spec && spec->source == AttributeSource::kFormula;
      if (!spec || (follows && std::none_of(spec->values.begin(), spec->values.end(),
                                            [&](const Expression& value) { return value.text() == text; })))
        Problem(absl::StrCat(string(OpName(compute.kind)), " has no ", attribute, " ", text));
    }
  }

  // The weights in one slot, which a compute reads as one operand.
  std::vector<const StatedWeight*> WeightsOf(const string& slot) const {
    std::vector<const StatedWeight*> weights;
    for (const StatedWeight& weight : piece_.weights) {
      if (weight.slot == slot && numbers_.Hold(weight.when)) weights.push_back(&weight);
    }
    return weights;
  }

  struct CutSlot {
    const SignatureDim* dim = nullptr;
    std::vector<double> segments;
  };

  // What is cut of a compute's slots.
  std::vector<CutSlot> CutsOf(const Compute& compute, const OpSignature& signature) {
    std::vector<CutSlot> cuts;
    for (size_t i = 0; i < compute.instruction.parameters.size(); ++i) {
      const std::vector<const StatedWeight*> weights = WeightsOf(compute.instruction.parameters[i]);
      if (weights.front()->cut < 0) continue;
      const int stacked = weights.front()->form == Form::kExperts ? 1 : 0;
      CutSlot cut = {&OperandAt(signature.parameters, i)->dims[static_cast<size_t>(weights.front()->cut + stacked)],
                     {}};
      for (const StatedWeight* weight : weights) {
        const std::vector<double> segments = SegmentsOf(*weight);
        cut.segments.insert(cut.segments.end(), segments.begin(), segments.end());
      }
      cuts.push_back(std::move(cut));
    }
    return cuts;
  }

  // The parts of the dims of one name. Empty: any.
  std::vector<double> PartsOf(const Compute& compute, const std::vector<CutSlot>& cuts, const SignatureDim& dim,
                              double size, bool* more) const {
    for (const OpInfo::Parts& parts : InfoOf(compute.instruction.kind).parts) {
      if (parts.name != dim.name) continue;
      *more = parts.more;
      std::vector<double> sizes;
      for (const Expression& part : parts.sizes) {
        sizes.push_back(part.Evaluate([&](const string& name) {
          const int64_t* attribute = compute.instruction.FindInteger(name);
          return attribute ? static_cast<double>(*attribute) : std::nan("");
        }));
      }
      for (const CutSlot& cut : cuts) {
        if (parts.sizes.empty() && cut.dim->name == dim.name) sizes = cut.segments;
      }
      return sizes;
    }
    return {size};
  }

  void JudgeParts(const Compute& compute) {
    const Instruction& op = compute.instruction;
    const OpSignature& signature = *InfoOf(op.kind).signature;
    const string what(OpName(op.kind));
    const std::vector<CutSlot> cuts = CutsOf(compute, signature);
    for (const CutSlot& cut : cuts) {
      if (!std::islower(static_cast<unsigned char>(cut.dim->index)))
        Problem(absl::StrCat(what, " reads a weight that is cut along ", cut.dim->name, ", which must be whole"));
      bool more = false;
      const double size = std::accumulate(cut.segments.begin(), cut.segments.end(), 0.0);
      const std::vector<double> wanted = PartsOf(compute, cuts, *cut.dim, size, &more);
      if (wanted != cut.segments)
        Problem(absl::StrCat(what, " reads a weight in segments ", Text(cut.segments), ", not ", Text(wanted)));
    }
    JudgeCutsTogether(compute, signature, cuts);
    const std::vector<string>& endings = InfoOf(op.kind).published;
    for (size_t i = 0; i < std::min(endings.size(), op.parameters.size()); ++i) {
      const string& name = WeightsOf(op.parameters[i]).front()->name;
      if (!name.ends_with(endings[i])) Problem(absl::StrCat(what, " reads ", name, " as its ", endings[i].substr(1)));
    }
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const OperandSignature& operand = *OperandAt(signature.inputs, i);
      const auto found = parts_.find(op.inputs[i]);
      if (found == parts_.end() || operand.dims.empty() || operand.dims.back().name.empty()) continue;
      bool more = false;
      const std::vector<double> wanted = PartsOf(compute, cuts, operand.dims.back(), compute.inputs[i].back(), &more);
      const bool fits = more ? found->second.size() >= wanted.size() &&
                                   std::equal(wanted.begin(), wanted.end(), found->second.begin())
                             : found->second == wanted;
      if (!fits && !wanted.empty())
        Problem(absl::StrCat(what, " reads ", op.inputs[i], " in parts ", Text(wanted), ", but it is made of ",
                             Text(found->second)));
    }
    for (size_t i = 0; i < compute.stated->outputs.size(); ++i) {
      const OperandSignature& operand = *OperandAt(signature.outputs, i);
      if (operand.dims.size() + (operand.leading ? 1 : 0) < 2 || operand.dims.back().name.empty()) continue;
      bool more = false;
      const std::vector<double> parts = PartsOf(compute, cuts, operand.dims.back(), compute.outputs[i].back(), &more);
      if (!parts.empty() && !more) parts_[compute.stated->outputs[i]] = parts;
    }
  }

  // What has an index that is cut is cut along it, and the vocabulary is cut wherever it is.
  void JudgeCutsTogether(const Compute& compute, const OpSignature& signature, const std::vector<CutSlot>& cuts) {
    std::set<char> indices;
    for (const CutSlot& cut : cuts) indices.insert(cut.dim->index);
    if (indices.size() > 1)
      Problem(absl::StrCat(string(OpName(compute.instruction.kind)), " reads weights cut along several dims"));
    size_t have = 0;
    bool vocabulary = false;
    for (size_t i = 0; i < compute.instruction.parameters.size(); ++i) {
      const std::vector<SignatureDim>& dims = OperandAt(signature.parameters, i)->dims;
      have +=
          std::any_of(dims.begin(), dims.end(), [&](const SignatureDim& dim) { return indices.contains(dim.index); });
      vocabulary |= std::any_of(dims.begin(), dims.end(), [](const SignatureDim& dim) { return dim.index == 'v'; });
    }
    if (have != cuts.size() || (vocabulary && cuts.empty()))
      Problem(absl::StrCat(string(OpName(compute.instruction.kind)),
                           " reads weights of which some are cut and some are whole"));
    const bool summed = indices.contains('i') && compute.instruction.kind == OpKind::kLinear;
    if (summed && compute.instruction.parameters.size() > 1)
      Problem("a linear whose product is a term of a sum has a bias, which each rank would add");
  }

  const ModelStatement& statement_;
  const StatedPiece& piece_;
  const string name_;
  const ModelNumbers& numbers_;
  std::set<string>& problems_;
  const RankPiece ranked_;
  std::set<string> reads_;
  std::map<string, std::vector<double>> parts_;  // by value: of its last dim
};

void JudgeNames(const ModelStatement& statement, const Module& module, std::set<string>& problems) {
  std::set<string> numbers, published;
  for (const StatedConstant& constant : statement.constants) {
    if (!numbers.insert(constant.name).second) problems.insert("constant " + constant.name + " is there twice");
  }
  for (const auto& [name, formula] : statement.lets) {
    if (!numbers.insert(name).second) problems.insert("number " + name + " is there twice");
  }
  for (const Parameter& parameter : module.parameters) {
    if (!published.insert(parameter.file_name).second)
      problems.insert("two weights are published as " + parameter.file_name);
  }
}

// Judges one piece of the module.
void JudgePiece(const ModelStatement& statement, const Module& module, const string& name, const StatedPiece& piece,
                std::set<string>& problems) {
  const ModelNumbers numbers({.sequence_length = kPrimeSequence}, module, statement);
  std::set<string> found;
  PieceJudge judge(statement, name, piece, numbers, found);
  judge.Judge();
  if (found.empty()) {
    for (const string& input : piece.inputs) {
      if (!judge.Reads(input)) found.insert(absl::StrCat("piece ", name, ": nothing reads the input ", input));
    }
    const RankPiece& ranked = judge.ranked();
    const bool head = &piece == &statement.head;
    if (!head && (piece.outputs.size() != 1 || !ranked.IsStream(*ranked.shape(piece.outputs[0]))))
      found.insert(absl::StrCat("piece ", name, " does not return the stream"));
  }
  problems.insert(found.begin(), found.end());
}

// Judges all pieces in every case of what `when` may ask of the layout and of what is trained.
void JudgePieces(const ModelStatement& statement, Module& module, std::set<string>& problems) {
  for (int which = 0; which < 8; ++which) {
    module.trains_backbone = module.trains_projection = (which & 1) == 0;
    module.dispatch = (which & 2) == 0 ? "all_to_all" : "all_gather";
    // Every axis divides what it must, or none does.
    const bool cut = (which & 4) != 0;
    const auto size = [&](Axis axis) { return cut ? PrimeOf(axis) : 1; };
    module.grid.tp = size(Axis::kTp), module.grid.cp = size(Axis::kCp), module.grid.ep = size(Axis::kEp);
    module.grid.expert_tp = size(Axis::kExpertTp);
    for (const auto& [name, piece] : PiecesOf(statement)) JudgePiece(statement, module, name, *piece, problems);
  }
  // The largest tp of attention: a head for each rank, so that several ranks share a key head.
  if (const int64_t heads = module.size("attention.heads"); heads > 0 && statement.layers.contains('*')) {
    module.grid.tp = static_cast<int>(heads), module.grid.cp = 1;
    JudgePiece(statement, module, "*", statement.layers.at('*'), problems);
  }
}

}  // namespace

std::vector<string> StatementProblems(const ModelStatement& statement) {
  std::set<string> problems;
  for (Module& module : InEveryCase(statement, PrimeModule(statement, 2))) JudgePieces(statement, module, problems);
  Module expanded = PrimeModule(statement, 2);
  const ModelNumbers numbers({.sequence_length = kPrimeSequence}, expanded, statement);
  if (problems.empty()) ExpandStatement(statement, numbers, false, expanded);
  JudgeNames(statement, expanded, problems);
  return {problems.begin(), problems.end()};
}

}  // namespace planwright::testing
