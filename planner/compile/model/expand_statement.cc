#include "planner/compile/model/expand_statement.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/plan/statement/piece_flops.h"

namespace planwright {
namespace {

using std::string;
using Form = StatedWeight::Form;
using Shape = std::vector<int64_t>;

int64_t Elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Where a piece of the module is.
struct PieceAt {
  string frame, prefix;  // prefix: of published names
  int stage = 0;
};

class Expansion {
 public:
  Expansion(const ModelStatement& statement, const ModelNumbers& numbers, bool several_encoders, Module& module)
      : statement_(statement), numbers_(numbers), module_(module), encoder_(several_encoders ? module.name + "." : "") {
  }

  // Parameters are added in the order of the forward. The backward finishes gradients in about the reverse order, in
  // which buckets are filled (bucket_layout.h).
  void Run() {
    AddPiece(statement_.embed, {module_.name + ".embed", statement_.embed.prefix, 0});
    const std::vector<LayerPlace> places = PlacesOf(statement_, module_.layers);
    int expert_layers = 0;  // so far: the row of the next one in $expert_counts
    for (size_t i = 0; i < module_.layers.size(); ++i) {
      LayerSummary& layer = module_.layers[i];
      const StatedPiece& piece = statement_.layers.at(layer.kind);
      const int64_t before = module_.parameter_count;
      AddPiece(piece, {layer.frame, NameAt(places[i], piece.prefix), layer.stage});
      layer.parameters = module_.parameter_count - before;
      if (statement_.HasExperts(layer.kind)) layer.expert_row = expert_layers++;
    }
    AddPiece(statement_.head, {module_.name + ".head", statement_.head.prefix, module_.grid.pp - 1});
    for (const StatedShare& share : statement_.head.shared) Share(share);
  }

 private:
  void Share(const StatedShare& share) {
    if (!numbers_.Hold(share.when)) return;
    for (Storage& storage : module_.storages) {
      if (storage.frame == module_.name + ".embed" && storage.slot == share.of)
        storage.shared.push_back({module_.name + ".head", share.slot});
    }
  }

  void AddPiece(const StatedPiece& piece, const PieceAt& at) {
    for (const StatedWeight& weight : piece.weights) {
      if (!numbers_.Hold(weight.when)) continue;
      const WeightNumbers& numbers = NumbersOf(weight);
      const Shape& shape = numbers.shape;
      AddParameter(weight, numbers, at);
      if (weight.joined) {
        // One storage holds the parameters one after the other along dim 0; those of an expert along dim 1, as experts
        // are dim 0.
        Storage& storage = module_.storages.back();
        const size_t along = weight.form == Form::kExperts ? 1 : 0;
        storage.shape[along] += LocalShape(weight, shape)[along];
        storage.parameters.push_back(LastParameter());
      } else {
        module_.storages.push_back(Storage{.frame = at.frame,
                                           .slot = weight.slot,
                                           .shape = LocalShape(weight, shape),
                                           .parameters = {LastParameter()},
                                           .stage = at.stage});
      }
    }
  }

  int LastParameter() const { return static_cast<int>(module_.parameters.size()) - 1; }

  // What the formulas of a weight give. All layers of a kind have the same.
  struct WeightNumbers {
    Shape shape, segments;
    std::vector<double> draw;
  };
  const WeightNumbers& NumbersOf(const StatedWeight& weight) {
    const auto [known, first] = weight_numbers_.try_emplace(&weight);
    if (first) {
      known->second = {numbers_.SizesOf(weight.shape), numbers_.SizesOf(weight.segments), {}};
      for (const Expression& number : weight.numbers) known->second.draw.push_back(numbers_.Of(number));
    }
    return known->second;
  }

  void AddParameter(const StatedWeight& weight, const WeightNumbers& numbers, const PieceAt& at) {
    const Shape& shape = numbers.shape;
    const string suffix = at.prefix + weight.name;
    const bool buffer = weight.form == Form::kBuffer, experts = weight.form == Form::kExperts;
    Parameter& parameter = module_.parameters.emplace_back();
    parameter.name = absl::StrCat(module_.name, ".", suffix);
    parameter.file_name = absl::StrCat(absl::StrReplaceAll(weight.file_prefix, {{"{encoder}", encoder_}}), suffix);
    parameter.shape = shape;
    parameter.experts = experts ? module_.experts() : 0;
    // With expert_tp 1 an expert is not cut and has no shard_dim.
    if (weight.cut >= 0 && (!experts || module_.grid.expert_tp > 1)) {
      parameter.shard_dim = weight.cut;
      parameter.segments = weight.segments.empty() ? Shape{shape[weight.cut]} : numbers.segments;
      parameter.padded = weight.padded && shape[weight.cut] % module_.grid.tp != 0;
    }
    // No weight decay for tensors of one dim and for biases (docs/training/step.md#weight-decay-rule).
    parameter.decay = !buffer && shape.size() > 1 && !absl::EndsWith(suffix, ".bias");
    parameter.trained =
        !buffer && (weight.adapter || (weight.projection ? module_.trains_projection : module_.trains_backbone));
    parameter.buffer = buffer;
    parameter.init.kind = weight.draw;
    if (!numbers.draw.empty()) parameter.init.a = numbers.draw[0];
    if (numbers.draw.size() > 1) parameter.init.b = numbers.draw[1];
    if (buffer) return;
    const int64_t elements = std::max<int64_t>(parameter.experts, 1) * Elements(shape);
    (weight.projection ? module_.projector_count : module_.parameter_count) += elements;
  }

  // What one rank holds of a parameter: its part of the cut dim, or of experts its stack, with the experts as dim 0.
  Shape LocalShape(const StatedWeight& weight, Shape shape) const {
    const bool experts = weight.form == Form::kExperts;
    if (weight.cut >= 0) {
      // Divides, unless the weight is padded: then the first rank's part is the largest.
      const int64_t parts = experts ? module_.grid.expert_tp : module_.grid.tp;
      shape[weight.cut] = (shape[weight.cut] + (weight.padded ? parts - 1 : 0)) / parts;
    }
    if (experts) shape.insert(shape.begin(), module_.experts() / module_.grid.ep);
    return shape;
  }

  const ModelStatement& statement_;
  const ModelNumbers& numbers_;
  Module& module_;
  const string encoder_;
  std::map<const StatedWeight*, WeightNumbers> weight_numbers_;
};

}  // namespace

void ExpandStatement(const ModelStatement& statement, const ModelNumbers& numbers, bool several_encoders,
                     Module& module) {
  Expansion(statement, numbers, several_encoders, module).Run();
}

void CountFlops(const ModelStatement& statement, const ModelNumbers& numbers, const DataPlan& data, int64_t sequence,
                Module& module) {
  const auto of = [&](const StatedPiece& piece) { return FlopsOf(statement, piece, module, numbers, data, sequence); };
  module.embed_flops = of(statement.embed).forward;
  module.head_flops = of(statement.head).forward;
  std::map<char, PieceFlops> kinds;
  for (LayerSummary& layer : module.layers) {
    const auto [known, first] = kinds.try_emplace(layer.kind);
    if (first) known->second = of(statement.layers.at(layer.kind));
    layer.forward_flops = known->second.forward;
    layer.mixing_flops = known->second.mixing;
    layer.adapter_flops = known->second.adapter;
  }
}

}  // namespace planwright
