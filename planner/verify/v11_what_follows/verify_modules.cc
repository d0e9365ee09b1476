// V11 of modules: the constants of a module are those of its kind. Its parameters, storages, layers and counts are
// what the statement of the kind (model_statement.h) makes of the constants, the layer kinds and the grid. Weights
// are told apart by names, never by sizes.
//
// Not here: what layers compute (verify_forward_graphs.cc), and how storages lie in buckets (V7, verify_storage.cc).

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/plan/plan.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/piece_flops.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

string Text(const std::vector<int64_t>& sizes) { return absl::StrCat("[", absl::StrJoin(sizes, ","), "]"); }
string Text(const std::vector<int>& numbers) { return absl::StrCat("[", absl::StrJoin(numbers, ","), "]"); }
string Text(const string& text) { return text.empty() ? "nothing" : text; }
string Text(const std::vector<SharedSlot>& slots) {
  return absl::StrCat(
      "[",
      absl::StrJoin(slots, ",",
                    [](string* out, const SharedSlot& each) { absl::StrAppend(out, each.frame, ".", each.slot); }),
      "]");
}
string Text(bool value) { return value ? "true" : "false"; }
string Text(int value) { return absl::StrCat(value); }
string Text(int64_t value) { return absl::StrCat(value); }
string Text(const Init& init) { return absl::StrCat(string(InitKindName(init.kind)), "(", init.a, ", ", init.b, ")"); }

// Exactly equal: initial values are written and read without a loss.
bool Same(const Init& a, const Init& b) { return a.kind == b.kind && a.a == b.a && a.b == b.b; }
template <typename T>
bool Same(const T& a, const T& b) {
  return a == b;
}

// Compares one module with the statement of its kind.
class ModuleComparison {
 public:
  ModuleComparison(const Plan& plan, const Module& module, std::vector<Violation>& violations)
      : plan_(plan), module_(module), violations_(violations) {}

  void Check() {
    statement_ = StatementOf(module_);
    if (!statement_) return Fail(absl::StrCat("is of kind ", module_.kind, ", which has no statement"));
    Equal("has_images", module_.has_images, statement_->has_images);
    Equal("carries_loss", module_.carries_loss, statement_->carries_loss);
    if (module_.carries_loss) Equal("trains_projection", module_.trains_projection, module_.trains_backbone);
    CheckDispatch();
    CheckAdapters();
    CheckConstants();
    CheckOutputConstants();
    if (failed_) return;  // the rest is computed from the constants
    const ModelNumbers numbers(plan_.budget, module_, *statement_);
    numbers_ = &numbers;
    CheckPieces();
  }

 private:
  void Fail(string message) {
    failed_ = true;
    violations_.push_back({"V11", absl::StrCat("module ", module_.name, " ", message), module_.origin});
  }

  // `what` is a text, or a function that makes it: most comparisons hold, so the text is made only for a message.
  template <typename What, typename T>
  void Equal(const What& what, const T& found, const T& wanted) {
    if (Same(found, wanted)) return;
    Fail(absl::StrCat("has ", TextOf(what), " ", Text(found), ", not ", Text(wanted)));
  }
  template <typename What>
  static string TextOf(const What& what) {
    if constexpr (std::is_invocable_v<What>) {
      return what();
    } else {
      return what;
    }
  }

  bool HasLayer(char kind) const {
    for (const LayerSummary& layer : module_.layers) {
      if (layer.kind == kind) return true;
    }
    return false;
  }

  // Tokens can be gathered only where experts are on other ranks. That blocks do what the dispatch says is in
  // verify_forward_graphs.cc.
  void CheckDispatch() {
    const bool experts = std::any_of(module_.layers.begin(), module_.layers.end(),
                                     [&](const LayerSummary& layer) { return statement_->HasExperts(layer.kind); });
    const bool other_ranks = module_.grid.ep > 1 && experts;
    const string& found = module_.dispatch;
    if (found == "all_to_all" || (other_ranks && found == "all_gather")) return;
    Fail(absl::StrCat("has dispatch ", Text(found), ", not all_to_all", other_ranks ? " or all_gather" : "",
                      ", with ep ", module_.grid.ep, experts ? "" : " and no experts"));
  }

  // Adapters stand on products of layers that are frozen.
  void CheckAdapters() {
    if (module_.adapted() && module_.trains_backbone) Fail("has adapters, but its layers are trained themselves");
    string letters;
    for (const LayerSummary& layer : module_.layers) letters.push_back(layer.kind);
    const ModelStatement* plain = StatementOf(module_.kind);
    bool stand = true;
    for (const string& target : module_.adapter_targets) {
      const string problem = AdapterTargetProblem(*plain, letters, target);
      if (!problem.empty()) Fail(absl::StrCat("has the adapter target ", target, ", but ", problem));
      stand = stand && problem.empty();
    }
    if (stand && AdaptedNames(*plain, letters, module_.adapter_targets) != module_.adapter_targets)
      Fail("has adapter targets that are not the names of products, each once and in their order");
  }

  // The module has the constants of its kind, no others, each of its type and range.
  void CheckConstants() {
    size_t known = 0;
    for (const StatedConstant& constant : statement_->constants) {
      const auto found = module_.constants.find(constant.name);
      const bool wanted = constant.of == 0 || HasLayer(constant.of);
      if (found == module_.constants.end()) {
        if (wanted && !constant.otherwise) Fail(absl::StrCat("lacks the constant ", constant.name));
        continue;
      }
      ++known;
      if (!wanted)
        Fail(absl::StrCat("has the constant ", constant.name, " and no layer of kind ", string(1, constant.of)));
      const bool typed = constant.real ? std::holds_alternative<double>(found->second)
                                       : std::holds_alternative<int64_t>(found->second);
      if (!typed) {
        Fail(absl::StrCat("has a constant ", constant.name, " that is no ", constant.real ? "real number" : "integer"));
      } else if (const double value =
                     constant.real ? module_.real(constant.name) : static_cast<double>(module_.size(constant.name));
                 !(value > 0 || (constant.or_zero && value == 0)) || (constant.flag && value > 1)) {
        Fail(absl::StrCat("has the constant ", constant.name, " ", value, ", not ",
                          constant.flag      ? "0 or 1"
                          : constant.or_zero ? "0 or a number above it"
                                             : "a number above 0"));
      } else if (statement_->NumberWithout(constant.name, module_.constants) == value) {
        Fail(absl::StrCat("has the constant ", constant.name, " ", value, ", which a module lacks if it is ", value));
      }
    }
    if (known == module_.constants.size()) return;
    for (const auto& [name, value] : module_.constants) {
      const bool stated = std::any_of(statement_->constants.begin(), statement_->constants.end(),
                                      [&name = name](const StatedConstant& other) { return other.name == name; });
      if (!stated) Fail(absl::StrCat("has a constant ", name, ", which its kind does not have"));
    }
  }

  bool States(std::string_view constant) const {
    return std::any_of(statement_->constants.begin(), statement_->constants.end(),
                       [&](const StatedConstant& stated) { return stated.name == constant; });
  }

  // An encoder repeats some constants of the model that it feeds: its projector ends in that model's width and is
  // initialized like that model (docs/model/vision_encoder.md#projector).
  void CheckOutputConstants() {
    for (const Bridge& bridge : plan_.bridges) {
      if (bridge.from != module_.name) continue;
      const Module* fed = plan_.FindModule(bridge.to);
      if (!fed) continue;  // V2
      if (!fed->carries_loss || !module_.has_images)
        Fail(absl::StrCat("feeds ", bridge.to, ", but a bridge leads from an encoder to the language model"));
      Equal("output.hidden", module_.size("output.hidden"), fed->size("hidden"));
      // Not every projector is initialized like that model.
      if (States("output.layers"))
        Equal("output.layers", module_.size("output.layers"), static_cast<int64_t>(fed->layers.size()));
      if (States("output.init_std") && module_.real("output.init_std") != fed->real("init_std")) {
        Fail(absl::StrCat("has output.init_std ", module_.real("output.init_std"), ", not ", fed->real("init_std")));
      }
    }
  }

  // Walks the statement's pieces in plan order: embedding, layers, head. Each takes the next parameters and storages of
  // the module.
  void CheckPieces() {
    const string name = module_.name;
    int64_t counted = CheckPiece(statement_->embed, statement_->embed.prefix, absl::StrCat(name, ".embed"), 0);
    Equal("embed_flops", module_.embed_flops, FlopsOfPiece(statement_->embed).forward);
    const std::vector<LayerPlace> places = PlacesOf(*statement_, module_.layers);
    int expert_row = 0;
    std::map<char, PieceFlops> flops_of_kinds;
    for (size_t i = 0; i < module_.layers.size(); ++i) {
      const LayerSummary& layer = module_.layers[i];
      const auto stated = statement_->layers.find(layer.kind);
      if (stated == statement_->layers.end()) {
        Fail(absl::StrCat("has layer ", i, " of kind ", string(1, layer.kind), ", which ", module_.kind,
                          " does not have"));
        return;
      }
      const string frame = absl::StrCat(name, ".layers.", i);
      const int before = i == 0 ? 0 : module_.layers[i - 1].stage;
      if (layer.stage < before || layer.stage >= module_.grid.pp) {
        Fail(absl::StrCat("has layer ", i, " on stage ", layer.stage, " of ", module_.grid.pp,
                          ", after a layer on stage ", before));
      }
      if (layer.frame != frame) Equal([&] { return absl::StrCat("layer ", i, " of frame"); }, layer.frame, frame);
      const int64_t elements = CheckPiece(stated->second, NameAt(places[i], stated->second.prefix), frame, layer.stage);
      const auto of_layer = [&](const char* what) {
        return [&frame, what] { return absl::StrCat(frame, " of ", what); };
      };
      Equal(of_layer("parameters"), layer.parameters, elements);
      Equal(of_layer("expert_row"), layer.expert_row, statement_->HasExperts(layer.kind) ? expert_row++ : -1);
      const auto [flops, first] = flops_of_kinds.try_emplace(layer.kind);
      if (first) flops->second = FlopsOfPiece(stated->second);
      Equal(of_layer("forward_flops"), layer.forward_flops, flops->second.forward);
      Equal(of_layer("mixing_flops"), layer.mixing_flops, flops->second.mixing);
      Equal(of_layer("adapter_flops"), layer.adapter_flops, flops->second.adapter);
      counted += elements;
    }
    counted += CheckPiece(statement_->head, statement_->head.prefix, absl::StrCat(name, ".head"), module_.grid.pp - 1);
    Equal("head_flops", module_.head_flops, FlopsOfPiece(statement_->head).forward);
    if (parameter_ < module_.parameters.size()) {
      Fail(absl::StrCat("has a parameter ", module_.parameters[parameter_].name, ", which ", module_.kind,
                        " does not have"));
    }
    if (storage_ < module_.storages.size()) {
      Fail(absl::StrCat("has a storage ", module_.storages[storage_].frame, ".", module_.storages[storage_].slot,
                        ", which ", module_.kind, " does not have"));
    }
    Equal("parameter_count", module_.parameter_count, counted);
    Equal("projector_count", module_.projector_count, projector_);
  }

  PieceFlops FlopsOfPiece(const StatedPiece& piece) const {
    return FlopsOf(*statement_, piece, module_, *numbers_, plan_.data, plan_.budget.sequence_length);
  }

  // Checks the parameters and storages of one piece. Returns the number of elements of its parameters, without buffers
  // and without the projection.
  int64_t CheckPiece(const StatedPiece& piece, const string& prefix, const string& frame, int stage) {
    int64_t counted = 0;
    for (size_t i = 0; i < piece.weights.size(); ++i) {
      const StatedWeight& weight = piece.weights[i];
      if (!numbers_->Hold(weight.when)) continue;
      if (parameter_ >= module_.parameters.size()) {
        if (!std::exchange(ended_, true))
          Fail(absl::StrCat("lacks the parameter ", module_.name, ".", prefix, weight.name));
        return counted;
      }
      const std::vector<int64_t> shape = numbers_->SizesOf(weight.shape);
      const int64_t elements = CheckParameter(module_.parameters[parameter_], weight, shape, prefix);
      if (!weight.joined) CheckStorage(piece, i, shape, frame, stage);
      if (weight.form != StatedWeight::Form::kBuffer) (weight.projection ? projector_ : counted) += elements;
      ++parameter_;
    }
    return counted;
  }

  // Checks one parameter. Returns its number of elements, over all experts.
  int64_t CheckParameter(const Parameter& found, const StatedWeight& weight, const std::vector<int64_t>& shape,
                         const string& prefix) {
    using Form = StatedWeight::Form;
    const string suffix = prefix + weight.name;
    const bool buffer = weight.form == Form::kBuffer, experts = weight.form == Form::kExperts;
    const int64_t tensors = experts ? module_.size("moe.experts") : 0;
    const bool cut = weight.cut >= 0 && (!experts || module_.grid.expert_tp > 1);
    if (!absl::EndsWith(found.name, suffix) || found.name.size() != module_.name.size() + 1 + suffix.size() ||
        !absl::StartsWith(found.name, module_.name)) {
      Equal([&] { return absl::StrCat("as parameter ", parameter_); }, found.name,
            absl::StrCat(module_.name, ".", suffix));
    }
    const auto of = [&](const char* what) { return [&found, what] { return absl::StrCat(found.name, " of ", what); }; };
    const string file = absl::StrCat(FilePrefix(weight), suffix);
    Equal(of("file name"), found.file_name, file);
    Equal(of("shape"), found.shape, shape);
    Equal(of("experts"), found.experts, tensors);
    Equal(of("shard_dim"), found.shard_dim, cut ? weight.cut : -1);
    std::vector<int64_t> segments;
    if (cut)
      segments = weight.segments.empty() ? std::vector<int64_t>{shape[static_cast<size_t>(weight.cut)]}
                                         : numbers_->SizesOf(weight.segments);
    Equal(of("segments"), found.segments, segments);
    // Where tp divides the dim there is nothing to pad.
    Equal(of("padded"), found.padded, weight.padded && segments.front() % module_.grid.tp != 0);
    // Tensors of one dim and biases do not decay (docs/training/step.md#weight-decay-rule).
    Equal(of("decay"), found.decay, !buffer && shape.size() > 1 && !absl::EndsWith(suffix, ".bias"));
    Equal(of("trained"), found.trained,
          !buffer && (weight.adapter || (weight.projection ? module_.trains_projection : module_.trains_backbone)));
    Equal(of("buffer"), found.buffer, buffer);
    Equal(of("part of rates"), found.part, RatePartOf(weight, file));
    Init draw{weight.draw, 0, 0};
    if (!weight.numbers.empty()) draw.a = numbers_->Of(weight.numbers[0]);
    if (weight.numbers.size() > 1) draw.b = numbers_->Of(weight.numbers[1]);
    Equal(of("initial value"), found.init, draw);
    int64_t elements = std::max<int64_t>(found.experts, 1);
    for (int64_t size : found.shape) elements *= size;  // RangeProblem has bounded this product
    return elements;
  }

  // docs/training/step.md#rates-by-part: the first part with the name of the module, of its part, or like that of the
  // tensor; none for what no step changes.
  int RatePartOf(const StatedWeight& weight, const string& file) const {
    const bool trained = weight.adapter || (weight.projection ? module_.trains_projection : module_.trains_backbone);
    if (weight.form == StatedWeight::Form::kBuffer || !trained) return -1;
    const char* part = weight.adapter ? ".adapter" : weight.projection ? ".projection" : ".backbone";
    const bool has_parts = weight.adapter || module_.has_images;
    const std::vector<RatePart>& parts = plan_.optimizer.parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      const string& match = parts[i].match;
      const bool of_part = has_parts && match == absl::StrCat(module_.name, part);
      if (match == module_.name || of_part || Like(match.c_str(), file.c_str())) return static_cast<int>(i);
    }
    return -1;
  }

  // Whether the text is what the pattern says, letter by letter; a star of it is no letter or any number of them. The
  // last star so far is the one that takes more where the letters behind it part.
  static bool Like(const char* pattern, const char* text) {
    const char *star = nullptr, *resume = nullptr;
    while (*text != '\0') {
      if (*pattern == '*') {
        star = pattern++, resume = text;
      } else if (*pattern == *text) {
        ++pattern, ++text;
      } else if (star != nullptr) {
        pattern = star + 1, text = ++resume;
      } else {
        return false;
      }
    }
    while (*pattern == '*') ++pattern;
    return *pattern == '\0';
  }

  // If several encoders feed one model, each has its own names in a file, which start with the module's name.
  string FilePrefix(const StatedWeight& weight) const {
    return absl::StrReplaceAll(weight.file_prefix, {{"{encoder}", plan_.modules.size() > 2 ? module_.name + "." : ""}});
  }

  // Checks the storage that starts with weight `first` of the piece: that weight alone, or joined with the weights
  // after it along their dim 0 (query, key and value; gate and up of each expert). `local`: the shape of the first,
  // which is cut to what one rank holds.
  void CheckStorage(const StatedPiece& piece, size_t first, std::vector<int64_t> local, const string& frame,
                    int stage) {
    const StatedWeight& weight = piece.weights[first];
    if (storage_ >= module_.storages.size()) {
      if (!std::exchange(ended_, true)) Fail(absl::StrCat("lacks the storage ", frame, ".", weight.slot));
      return;
    }
    const Storage& found = module_.storages[storage_++];
    std::vector<int> parameters = {static_cast<int>(parameter_)};
    for (size_t i = first + 1; i < piece.weights.size() && piece.weights[i].joined; ++i) {
      parameters.push_back(static_cast<int>(parameter_ + (i - first)));
      local[0] += numbers_->SizeOf(piece.weights[i].shape[0]);
    }
    const bool experts = weight.form == StatedWeight::Form::kExperts;
    if (weight.cut >= 0) {
      int64_t& rows = local[static_cast<size_t>(weight.cut)];
      const int64_t ranks = experts ? module_.grid.expert_tp : module_.grid.tp;
      const bool rest = weight.padded && rows % ranks > 0;
      rows = rows / ranks + (rest ? 1 : 0);
    }
    if (experts) local.insert(local.begin(), module_.size("moe.experts") / module_.grid.ep);
    const auto of = [&](const char* what) { return [&, what] { return absl::StrCat(frame, ".", weight.slot, what); }; };
    if (found.frame != frame || found.slot != weight.slot) {
      Equal([&] { return absl::StrCat("as storage ", storage_ - 1); }, absl::StrCat(found.frame, ".", found.slot),
            absl::StrCat(frame, ".", weight.slot));
    }
    Equal(of(" of shape"), found.shape, local);
    Equal(of(" of parameters"), found.parameters, parameters);
    Equal(of(" on stage"), found.stage, stage);
    // What the head takes of the embedding is the same tensor, and no parameter of its own.
    std::vector<SharedSlot> shared;
    for (const StatedShare& share : statement_->head.shared) {
      if (&piece == &statement_->embed && share.of == weight.slot && numbers_->Hold(share.when))
        shared.push_back({module_.name + ".head", share.slot});
    }
    Equal(of(" shared with"), found.shared, shared);
  }

  const Plan& plan_;
  const Module& module_;
  std::vector<Violation>& violations_;
  const ModelStatement* statement_ = nullptr;
  const ModelNumbers* numbers_ = nullptr;
  size_t parameter_ = 0, storage_ = 0;  // the next ones of the module
  int64_t projector_ = 0;               // elements of the projection so far
  bool failed_ = false;
  bool ended_ = false;  // the module has too few parameters or storages, which is reported once
};

}  // namespace

std::vector<Violation> VerifyModules(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Module& module : index.plan().modules) ModuleComparison(index.plan(), module, violations).Check();
  return violations;
}

}  // namespace planwright
