#include "planner/plan/statement/adapted_statement.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/bug.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

constexpr string_view kWeight = ".weight", kA = ".lora_A.weight", kB = ".lora_B.weight";

// What a target can name: "mixer.q_proj" of "mixer.q_proj.weight"; "" of what is no such weight.
string ProductName(const StatedWeight& weight) {
  const string_view name = weight.name;
  return name.ends_with(kWeight) ? string(name.substr(0, name.size() - kWeight.size())) : "";
}

bool Reads(const StatedCompute& compute, string_view slot) {
  return std::any_of(compute.slots.begin(), compute.slots.end(),
                     [&](const string& each) { return PlainSlot(each) == slot; });
}

// Whether the weight is the matrix of a product of a backbone's layer.
bool IsProduct(const StatedPiece& piece, const StatedWeight& weight) {
  if (weight.projection || weight.form != StatedWeight::Form::kWeight || weight.shape.size() != 2 ||
      ProductName(weight).empty())
    return false;
  return std::any_of(piece.computes.begin(), piece.computes.end(), [&](const StatedCompute& compute) {
    return compute.kind == OpKind::kLinear && compute.slots.front() == weight.slot;
  });
}

// What reads the weight, for messages.
string ReaderOf(const StatedPiece& piece, const StatedWeight& weight) {
  for (const StatedCompute& compute : piece.computes) {
    if (Reads(compute, weight.slot)) return string(OpName(compute.kind));
  }
  return "nothing";
}

Expression Formula(const string& text) {
  const std::optional<Expression> formula = Expression::Parse(text);
  Require(formula.has_value(), "an adapter has the formula " + text);
  return *formula;
}

string InBrackets(const Expression& formula) { return absl::StrCat("(", formula.text(), ")"); }

class Rewriter {
 public:
  Rewriter(ModelStatement& statement, const std::vector<string>& targets) : statement_(statement), targets_(targets) {}

  void Rewrite() {
    const auto given = [](const char* name, bool real) {
      StatedConstant constant;
      constant.name = name;
      constant.real = real;
      constant.given = true;
      return constant;
    };
    statement_.constants.push_back(given(kAdapterRank, false));
    statement_.constants.push_back(given(kAdapterAlpha, true));
    for (auto& [letter, piece] : statement_.layers) RewritePiece(letter, piece);
  }

 private:
  // One weight that has an adapter, by the index of the weight in its piece.
  struct Adapter {
    size_t weight = 0;
    string slot;  // of lora_A and lora_B, without the end
  };

  bool IsTargeted(const StatedWeight& weight) const {
    const string name = ProductName(weight);
    return std::any_of(targets_.begin(), targets_.end(), [&](const string& target) { return IsTarget(target, name); });
  }

  void RewritePiece(char letter, StatedPiece& piece) {
    std::map<string, std::vector<Adapter>> adapters;  // by slot of the weights that they stand on
    const size_t weights = piece.weights.size();
    for (size_t i = 0; i < weights; ++i) {
      // A copy: the list grows.
      const StatedWeight weight = piece.weights[i];
      if (!IsProduct(piece, weight) || !IsTargeted(weight)) continue;
      Adapter adapter = {i, absl::StrReplaceAll(ProductName(weight), {{".", "_"}})};
      // A name that is there for each of several cases has one adapter, which is there in all of them.
      AddWeights(letter, weight, adapter.slot, piece);
      adapters[weight.slot].push_back(std::move(adapter));
    }
    if (adapters.empty()) return;
    std::vector<StatedCompute> computes;
    for (StatedCompute& compute : piece.computes) {
      const auto found = compute.kind == OpKind::kLinear ? adapters.find(compute.slots.front()) : adapters.end();
      if (found == adapters.end()) {
        computes.push_back(std::move(compute));
      } else {
        AddSecondWay(piece, found->second, std::move(compute), computes);
      }
    }
    piece.computes = std::move(computes);
  }

  void AddWeights(char letter, const StatedWeight& weight, const string& slot, StatedPiece& piece) {
    // The root of a formula is that of a name.
    const string inputs = absl::StrCat("adapter.", statement_.FindLayer(letter)->word, ".", slot, ".inputs");
    const bool known = std::any_of(statement_.lets.begin(), statement_.lets.end(),
                                   [&](const StatedNumber& let) { return let.name == inputs; });
    if (!known) statement_.lets.push_back({inputs, weight.shape[1], weight.line});
    StatedWeight made = weight;
    made.joined = made.padded = false;
    made.adapter = true;
    const string name = ProductName(weight);
    made.slot = slot + "_lora_A";
    made.name = absl::StrCat(name, string(kA));
    made.shape = {Formula(kAdapterRank), weight.shape[1]};
    made.cut = weight.cut == 1 ? 1 : -1;
    if (made.cut < 0) made.segments.clear();
    made.draw = Init::Kind::kUniform;
    made.numbers = {Formula(absl::StrCat("0 - 1 / sqrt(", inputs, ")")),
                    Formula(absl::StrCat("1 / sqrt(", inputs, ")"))};
    piece.weights.push_back(made);
    made = weight;
    made.joined = made.padded = false;
    made.adapter = true;
    made.slot = slot + "_lora_B";
    made.name = absl::StrCat(name, string(kB));
    made.shape = {weight.shape[0], Formula(kAdapterRank)};
    made.cut = weight.cut == 0 ? 0 : -1;
    if (made.cut < 0) made.segments.clear();
    made.draw = Init::Kind::kZeros;
    made.numbers.clear();
    piece.weights.push_back(std::move(made));
  }

  // Rows of a weight, as a rank has them.
  static string RowsOfRank(const StatedWeight& weight) {
    return absl::StrCat(InBrackets(weight.shape[0]), weight.cut == 0 ? " / tp" : "");
  }

  // The rows of what is joined in front of the weight; "" where nothing is.
  static string RowsBefore(const StatedPiece& piece, size_t weight) {
    std::vector<string> rows;
    for (size_t i = weight; piece.weights[i].joined; --i) rows.insert(rows.begin(), RowsOfRank(piece.weights[i - 1]));
    return absl::StrJoin(rows, " + ");
  }

  // The thin products come first, the last one in front: the gradient of what all of them read is then summed in the
  // order in which sums are made, from the product with the frozen weight on.
  void AddSecondWay(StatedPiece& piece, const std::vector<Adapter>& adapters, StatedCompute product,
                    std::vector<StatedCompute>& computes) {
    const string y = product.outputs.front(), x = product.inputs.front();
    std::vector<string> order, backward;
    for (auto adapter = adapters.rbegin(); adapter != adapters.rend(); ++adapter) {
      StatedCompute low = Beside(product, OpKind::kLinear);
      low.inputs = {x};
      low.slots = {adapter->slot + "_lora_A"};
      low.outputs = {adapter->slot + "_low"};
      for (const char* entry : {"linear.", "all_reduce.", "all_gather."}) order.push_back(entry + low.outputs.front());
      for (const char* entry : {"add_linear_input_grad.", "all_reduce.", "reduce_scatter."})
        backward.push_back(entry + low.outputs.front());
      computes.push_back(std::move(low));
    }
    string sum = y + "_base";
    product.outputs = {sum};
    order.push_back("linear." + sum);
    const StatedCompute original = product;
    computes.push_back(std::move(product));
    for (const Adapter& adapter : adapters) {
      const StatedWeight& weight = piece.weights[adapter.weight];
      StatedCompute add = Beside(original, OpKind::kAddLinear);
      add.inputs = {sum, adapter.slot + "_low"};
      add.slots = {adapter.slot + "_lora_B"};
      sum = &adapter == &adapters.back() ? y : absl::StrCat(y, "_", adapter.slot);
      add.outputs = {sum};
      add.settings = {Setting("width", RowsOfRank(weight))};
      if (const string before = RowsBefore(piece, adapter.weight); !before.empty())
        add.settings.push_back(Setting("first", before));
      add.settings.push_back(Setting("scale", absl::StrCat(kAdapterAlpha, " / ", kAdapterRank)));
      order.push_back("add_linear." + sum);
      computes.push_back(std::move(add));
    }
    PutInOrders(piece, y, x, order, backward);
  }

  // A compute that is there where another one is.
  static StatedCompute Beside(const StatedCompute& other, OpKind kind) {
    StatedCompute compute;
    compute.kind = kind;
    compute.when = other.when;
    compute.line = other.line;
    return compute;
  }

  static StatedSetting Setting(const char* attribute, const string& formula) {
    StatedSetting setting;
    setting.attribute = attribute;
    setting.formula = Formula(formula);
    setting.text = setting.formula->text();
    return setting;
  }

  // In the place of the product the order of the forward has both ways. In that of the backward the second way is in
  // front of the product's, and behind what both give the input comes their sum.
  static void PutInOrders(StatedPiece& piece, const string& y, const string& x, const std::vector<string>& forward,
                          const std::vector<string>& backward) {
    if (piece.overlap_forward.empty()) return;
    std::vector<string>& order = piece.overlap_forward;
    const auto at = std::find(order.begin(), order.end(), "linear." + y);
    Require(at != order.end(), "an order of a statement lacks linear." + y);
    order.insert(order.erase(at), forward.begin(), forward.end());
    std::vector<string>& back = piece.overlap_backward;
    const auto gradient = std::find(back.begin(), back.end(), "linear_input_grad." + x);
    Require(gradient != back.end(), "an order of a statement lacks linear_input_grad." + x);
    const string sum = "add." + x;
    const bool summed = std::find(back.begin(), back.end(), sum) != back.end();
    const auto behind =
        back.insert(gradient, backward.begin(), backward.end()) + static_cast<std::ptrdiff_t>(backward.size()) + 1;
    if (!summed) back.insert(behind, sum);
  }

  ModelStatement& statement_;
  const std::vector<string>& targets_;
};

}  // namespace

bool IsTarget(string_view target, string_view name) {
  if (target.empty() || name.size() < target.size()) return false;
  const size_t before = name.size() - target.size();
  return name.substr(before) == target && (before == 0 || name[before - 1] == '.');
}

std::vector<AdapterProduct> AdapterProducts(const ModelStatement& statement, string_view letters) {
  std::vector<AdapterProduct> products;
  for (const auto& [letter, piece] : statement.layers) {
    if (letters.find(letter) == string_view::npos) continue;
    for (const StatedWeight& weight : piece.weights) {
      AdapterProduct product = {letter, ProductName(weight), piece.prefix};
      if (IsProduct(piece, weight) && std::find(products.begin(), products.end(), product) == products.end())
        products.push_back(std::move(product));
    }
  }
  return products;
}

std::vector<string> AdaptedNames(const ModelStatement& statement, string_view letters,
                                 const std::vector<string>& targets) {
  std::vector<string> names;
  for (AdapterProduct& product : AdapterProducts(statement, letters)) {
    const bool adapted = std::any_of(targets.begin(), targets.end(),
                                     [&](const string& target) { return IsTarget(target, product.name); });
    if (adapted && std::find(names.begin(), names.end(), product.name) == names.end())
      names.push_back(std::move(product.name));
  }
  return names;
}

string AdapterTargetProblem(const ModelStatement& statement, string_view letters, string_view target) {
  bool found = false;
  string problem;
  const auto refuse = [&](const StatedWeight& weight, const string& why) {
    if (problem.empty()) problem = absl::StrCat(ProductName(weight), " ", why);
  };
  const auto look = [&](const StatedPiece& piece, bool layer) {
    for (const StatedWeight& weight : piece.weights) {
      if (!IsTarget(target, ProductName(weight))) continue;
      if (!layer) {
        refuse(weight, "is in no layer: adapters stand on products of layers");
      } else if (weight.projection) {
        refuse(weight, "is also of a merger of inner layers, which belongs to the projection: name the others alone");
      } else if (weight.form == StatedWeight::Form::kExperts) {
        refuse(weight, "is of the experts: adapters stand on dense products");
      } else if (!IsProduct(piece, weight)) {
        refuse(weight, absl::StrCat("is no product of a matrix: ", ReaderOf(piece, weight), " reads it"));
      } else {
        found = true;
      }
    }
  };
  look(statement.embed, false);
  for (const auto& [letter, piece] : statement.layers) {
    if (letters.find(letter) != string_view::npos) look(piece, true);
  }
  look(statement.head, false);
  if (problem.empty() && !found) problem = "names no product of its layers";
  return problem;
}

bool IsOfAdapter(const Module& module, const Parameter& parameter) {
  return module.adapted() && (parameter.name.ends_with(kA) || parameter.name.ends_with(kB));
}

ModulePart PartOf(const Module& module, const Parameter& parameter) {
  if (IsOfAdapter(module, parameter)) return ModulePart::kAdapter;
  return IsProjection(module, parameter) ? ModulePart::kProjection : ModulePart::kBackbone;
}

string NameOfPart(const Module& module, ModulePart part) {
  if (part == ModulePart::kAdapter) return module.name + ".adapter";
  if (!module.has_images) return module.name;
  return module.name + (part == ModulePart::kProjection ? ".projection" : ".backbone");
}

int64_t AdapterElements(const Module& module) {
  int64_t elements = 0;
  for (const Parameter& parameter : module.parameters) {
    if (IsOfAdapter(module, parameter)) elements += parameter.shape[0] * parameter.shape[1];
  }
  return elements;
}

ModelStatement AdaptedStatement(const ModelStatement& statement, const std::vector<string>& targets) {
  ModelStatement adapted = statement;
  Rewriter(adapted, targets).Rewrite();
  return adapted;
}

const ModelStatement* StatementOf(const Module& module) {
  const ModelStatement* stated = StatementOf(module.kind);
  if (!stated || !module.adapted()) return stated;
  static std::mutex mutex;
  static std::map<std::pair<string, std::vector<string>>, std::unique_ptr<const ModelStatement>> known;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const ModelStatement>& adapted = known[{module.kind, module.adapter_targets}];
  if (!adapted) adapted = std::make_unique<const ModelStatement>(AdaptedStatement(*stated, module.adapter_targets));
  return adapted.get();
}

}  // namespace planwright
