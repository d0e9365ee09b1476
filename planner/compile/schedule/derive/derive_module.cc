#include "planner/compile/schedule/derive/derive_module.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/compile/schedule/blocks/block_builder.h"
#include "planner/compile/schedule/blocks/block_passes.h"
#include "planner/compile/schedule/derive/backward.h"
#include "planner/compile/schedule/derive/forward.h"
#include "planner/compile/schedule/derive/piece_context.h"
#include "planner/compile/schedule/derive/stated_order.h"

namespace planwright {
namespace {

using std::string;

constexpr char kStreamOfDispatch[] = "dispatch";

class PieceBlocks {
 public:
  PieceBlocks(const PieceContext& context, DerivedPiece piece) : context_(context), piece_(std::move(piece)) {}

  Block Forward(const string& name) const {
    BlockBuilder builder(context_.module().name, name, context_.module().origin);
    for (size_t input : piece_.inputs) builder.Input(NameOf(input), piece_.type(input));
    for (const DerivedStep& step : piece_.forward) Emit(step, builder);
    for (const auto& [value, probe] : piece_.probes) builder.ProbeValue(NameOf(value), probe);
    return builder.Finish(NamesOf(piece_.outputs), NamesOf(Kept()));
  }

  // `gives_gradient`: whether what is before the piece takes the gradients of its inputs.
  Block Backward(const string& name, const Block& forward, bool gives_gradient) const {
    BlockBuilder builder(context_.module().name, name, context_.module().origin);
    builder.TakeSaved(forward);
    for (size_t input : piece_.gradient_inputs) builder.InputGradient(NameOf(input), piece_.type(input));
    for (const DerivedStep& step : piece_.backward) Emit(step, builder);
    return builder.Finish(gives_gradient ? NamesOf(piece_.gradient_outputs) : std::vector<string>(), {});
  }

 private:
  const string& NameOf(size_t value) const { return piece_.values[value].name; }
  std::vector<string> NamesOf(const std::vector<size_t>& values) const {
    std::vector<string> names;
    for (size_t value : values) names.push_back(NameOf(value));
    return names;
  }

  // What the backward reads and does not make itself.
  std::vector<size_t> Kept() const {
    std::set<size_t> made(piece_.gradient_inputs.begin(), piece_.gradient_inputs.end());
    std::vector<size_t> kept;
    for (const DerivedStep& step : piece_.backward) {
      for (size_t input : step.inputs) {
        if (!made.contains(input)) kept.push_back(input);
      }
      made.insert(step.outputs.begin(), step.outputs.end());
    }
    return kept;
  }

  void Emit(const DerivedStep& step, BlockBuilder& builder) const {
    std::vector<Output> outputs;
    for (size_t output : step.outputs) outputs.push_back({NameOf(output), piece_.type(output)});
    Instruction& made = builder.Emit(
        step.kind, {NamesOf(step.inputs), step.parameters, step.gradients, step.attributes}, std::move(outputs));
    if (step.group.empty()) return;
    made.group = absl::StrCat(context_.module().name, ".", step.group);
    // All of the dispatch is on one stream, so that a group has one communicator, overlapped or not.
    if (context_.overlaps_dispatch() && (step.group == "ep" || step.group == "ep_tp")) made.stream = kStreamOfDispatch;
  }

  const PieceContext& context_;
  DerivedPiece piece_;
};

// Whether the embedding of the module learns, or something before it. A frozen language model hands gradients to an
// encoder that learns.
bool EmbeddingLearns(const PieceContext& context) {
  return context.module().trains_backbone || std::any_of(context.encoders().begin(), context.encoders().end(),
                                                         [](const FeedingEncoder& encoder) { return encoder.learns; });
}

// Whether something learns in the embedding and the layers of the module, or before them: then gradients pass layers.
// The projection of an encoder may learn alone, and so may adapters of layers.
bool LayersLearn(const PieceContext& context) { return context.module().trains_layers() || EmbeddingLearns(context); }

// Whether something learns in the taps of the module, or before them. Weights of a projection lie there, too.
bool TapsLearn(const PieceContext& context) {
  return LayersLearn(context) || (context.numbers()("taps") > 0 && context.module().trains_projection);
}

// Which of these values are carries, or gradients of carries.
std::vector<string> CarriesAmong(const PieceContext& context, const DerivedPiece& piece,
                                 const std::vector<size_t>& values) {
  std::vector<string> carries;
  for (size_t value : values) {
    const string& stated = piece.values[value].stated;
    carries.push_back(context.IsCarry(stated) ? stated : "");
  }
  return carries;
}

// Names of the gradients of values, by their names.
std::map<string, string> GradientNames(const DerivedPiece& piece) {
  std::map<string, string> names;
  for (const auto& [value, gradient] : piece.gradients) names[piece.values[value].name] = piece.values[gradient].name;
  return names;
}

// Gradients that what is before the piece would take, and does not, are not made (DropDeadInstructions).
void DeclareUnmade(const std::map<string, string>& gradients, Block& forward, Block& backward) {
  Block left = backward;
  DropDeadInstructions(left);
  std::set<string> made, values;
  for (const Output& input : left.inputs) made.insert(input.name);
  for (const Instruction& instruction : left.body) {
    for (const Output& output : instruction.outputs) made.insert(output.name);
  }
  for (Instruction& instruction : forward.body) {
    for (Output& output : instruction.outputs) {
      const auto gradient = gradients.find(output.name);
      if (gradient == gradients.end() || made.contains(gradient->second)) continue;
      DeclareIdleGradient(output);
      values.insert(output.name);
    }
  }
  for (Output& take : backward.takes) {
    if (values.contains(take.name)) DeclareIdleGradient(take);
  }
}

LayerBlocks DerivePiece(const PieceContext& context, const StatedPiece& stated, const string& word) {
  const Module& module = context.module();
  const bool goes_over_bridge = module.has_images && &stated == &context.statement().head;
  DerivedPiece piece = DeriveForward(context, stated, goes_over_bridge);
  DeriveBackward(context, stated, piece);
  // No gradient comes back over the bridge to a module that does not learn, nor along an idle stream, nor for a carry
  // of what does not learn.
  for (size_t output : piece.outputs) {
    const bool carry = context.IsCarry(piece.values[output].stated);
    const bool takes = goes_over_bridge ? module.trained()
                       : carry          ? piece.output_gradients.contains(output)
                                        : !context.stream_is_idle();
    if (!takes) piece.values[output].type.gradient.reset();
  }
  // Gradients of rows leave under the names that the bridges give them.
  for (size_t gradient : piece.gradient_outputs) {
    for (const FeedingEncoder& encoder : context.encoders()) {
      if (piece.values[gradient].stated == encoder.rows) piece.values[gradient].name = encoder.gradient;
    }
  }
  if (context.overlaps_dispatch() && !stated.overlap_forward.empty()) {
    PutInOrder(stated.overlap_forward, piece, piece.forward);
    PutInOrder(stated.overlap_backward, piece, piece.backward);
  }
  Carried carried = {CarriesAmong(context, piece, piece.inputs), CarriesAmong(context, piece, piece.outputs)};
  Carried carried_back = {CarriesAmong(context, piece, piece.gradient_inputs),
                          CarriesAmong(context, piece, piece.gradient_outputs)};
  SlotGradients gradients = std::move(piece.slot_gradients);
  const std::map<string, string> gradient_names = GradientNames(piece);
  const PieceBlocks made(context, std::move(piece));
  const string name = absl::StrCat(module.name, ".", word);
  LayerBlocks blocks = {.forward = made.Forward(name + ".forward"),
                        .gradients = std::move(gradients),
                        .carried = std::move(carried),
                        .carried_back = std::move(carried_back)};
  blocks.backward = made.Backward(name + ".backward", blocks.forward, TapsLearn(context));
  if (blocks.backward->outputs.empty()) blocks.carried_back.outputs.clear();
  DeclareUnmade(gradient_names, blocks.forward, *blocks.backward);
  return blocks;
}

void AddEvaluation(ModuleBlocks& blocks) {
  for (LayerBlocks* piece : {&blocks.embedding, &blocks.head}) piece->evaluate = MakeEvaluation(piece->forward);
  for (auto& [kind, layer] : blocks.layers) layer.evaluate = MakeEvaluation(layer.forward);
  for (LayerBlocks& tap : blocks.taps) tap.evaluate = MakeEvaluation(tap.forward);
}

// For sums of losses by source, which are outside of blocks: inside, nothing knows which sample is of which source.
void ReturnTokenLoss(Block& head) {
  for (const Instruction& instruction : head.body) {
    if (instruction.kind == OpKind::kTokenLoss) head.outputs = {instruction.outputs.front().name};
  }
}

}  // namespace

ModuleBlocks DeriveModule(const BlockInputs& inputs, const Module& module, const ModelStatement& statement,
                          bool overlaps_dispatch) {
  const PieceContext context(inputs, module, statement, overlaps_dispatch);
  ModuleBlocks blocks = {
      DerivePiece(context, statement.embed, "embed"), DerivePiece(context, statement.head, "head"), {}, {}};
  const char taps = statement.TapLetter();
  const bool one_kind = statement.layers.size() == (taps != 0 ? 2U : 1U);  // beside the taps
  for (const LayerSummary& layer : module.layers) {
    if (taps != 0 && layer.kind == taps) {
      const auto tap = static_cast<int64_t>(blocks.taps.size());
      const PieceContext at_tap(inputs, module, statement, overlaps_dispatch, tap);
      blocks.taps.push_back(
          DerivePiece(at_tap, statement.layers.at(taps), absl::StrCat(statement.FindLayer(taps)->word, ".", tap)));
      continue;
    }
    if (blocks.layers.contains(layer.kind)) continue;
    const string word = one_kind ? "layer" : statement.FindLayer(layer.kind)->word;
    blocks.layers.emplace(layer.kind, DerivePiece(context, statement.layers.at(layer.kind), word));
  }
  if (inputs.evaluates) AddEvaluation(blocks);
  if (inputs.sums_by_source() && module.carries_loss) ReturnTokenLoss(blocks.head.forward);
  const bool learns = LayersLearn(context);
  FinishBlocks(blocks.embedding, EmbeddingLearns(context), Recompute::kNothing);
  FinishBlocks(blocks.head, learns || module.trained(), Recompute::kNothing);
  for (auto& [kind, layer] : blocks.layers) FinishBlocks(layer, learns, RecomputeOf(module, kind));
  for (LayerBlocks& tap : blocks.taps) FinishBlocks(tap, TapsLearn(context), RecomputeOf(module, taps));
  return blocks;
}

}  // namespace planwright
