// V10 of run-time sizes: there is room for all rows that can come, and memory is planned for as many as the plan
// declares. Bounds follow from the instructions that bring rows (reads, the token dispatch), the data section and
// the module. They do not follow from how lowering sized them. Names of sizes are checked on the way.
//
// Not here: whether the planned rows fit the device (verify_memory.cc), and the mean that timings use (V11,
// verify_derived_fields.cc).

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/plan/sample_images.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

const string* SymbolOf(const std::vector<Output>& outputs, size_t i) {
  return i < outputs.size() && !outputs[i].type.dims.empty() ? std::get_if<string>(&outputs[i].type.dims.front())
                                                             : nullptr;
}

// Sizes come from any file: a product that no number holds is as many as there can be.
int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

class Rows {
 public:
  Rows(const PlanIndex& index, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), images_(ImagesOfSample(plan_.data, plan_.budget.sequence_length)),
        violations_(violations) {
    for (const Symbol& symbol : plan_.symbols) symbols_[symbol.name] = &symbol;
  }

  void Check() {
    for (const Role& role : plan_.roles) {
      for (const Instruction& op : role.step) Read(op);
    }
    for (const Block& block : plan_.blocks) {
      const Module* module = index_.module(block.module);
      if (!module) continue;
      Images(block, *module);
      Dispatch(block, *module);
    }
    for (const auto& [name, symbol] : symbols_) {
      if (spread_.contains(name) || symbol->expected == 0 || symbol->expected >= symbol->maximum) continue;
      Fail(nullptr, absl::StrCat("memory is planned for ", symbol->expected, " of ", name, ", of which ",
                                 symbol->maximum, " can come"));
    }
  }

 private:
  void Fail(const Module* module, string message) {
    if (said_.insert(message).second) violations_.push_back({"V10", message, index_.OriginOf(-1, -1, module)});
  }

  void Room(const string* name, int64_t wanted, const Module& module, const char* what) {
    auto symbol = name ? symbols_.find(*name) : symbols_.end();
    if (symbol == symbols_.end() || symbol->second->maximum >= wanted) return;
    Fail(&module, absl::StrCat("there is room for ", symbol->second->maximum, " of ", *name, ", and ", wanted, " ",
                               what, " can come"));
  }

  // Rows whose number comes at run time have the size of the module that is meant for them.
  void Named(const string* name, const Module& module, const string& what) {
    const string wanted = absl::StrCat(module.name, ".", what);
    if (name && *name == wanted) return;
    Fail(&module, absl::StrCat("there are ", name ? *name : "a number", " of rows where ", wanted, " come"));
  }

  // Images and documents, from what a sample can bring. A lane's samples are as many as its row counts.
  void Read(const Instruction& op) {
    const string* name = op.FindText("module");
    const Module* module = name ? index_.module(*name) : nullptr;
    if (!module || op.outputs.empty()) return;
    const int64_t sequence = plan_.budget.sequence_length;
    if (op.kind == OpKind::kReadTokens) {
      if (plan_.data.packed_documents) {
        Named(SymbolOf(op.outputs, op.outputs.size() - 1), *module, "documents");
        Room(SymbolOf(op.outputs, op.outputs.size() - 1), Times(plan_.budget.micro_samples, sequence), *module,
             "documents");
      }
      return;
    }
    const bool pixels = op.kind == OpKind::kReadImages;
    if (!pixels && op.kind != OpKind::kReadImageSizes) return;
    if (pixels) Named(SymbolOf(op.outputs, 0), *module, "patches");
    Named(SymbolOf(op.outputs, pixels ? 1 : 0), *module, "images");
    if (pixels) Named(SymbolOf(op.outputs, 2), *module, "images");
    if (images_.patches.empty() || op.outputs.back().type.dims.empty()) return;
    const auto* samples = std::get_if<int64_t>(&op.outputs.back().type.dims.front());
    if (!samples) return;
    Room(SymbolOf(op.outputs, pixels ? 1 : 0), Times(*samples, std::min(sequence, images_.max_images)), *module,
         "images");
    int64_t& most = lane_rows_[module->name];
    most = std::max(most, Times(*samples, std::min(sequence, images_.max_rows)));
    int64_t& images = lane_images_[module->name];
    images = std::max(images, Times(*samples, std::min(sequence, images_.max_images)));
    if (pixels) Room(SymbolOf(op.outputs, 0), Times(LargestPart(most, *module), Square()), *module, "patches");
  }

  int64_t Square() const { return Times(plan_.data.pixel_shuffle, plan_.data.pixel_shuffle); }
  // Parts along cp are as equal as bands of image tokens allow: one of them may have a band more than its share.
  static int64_t LargestPart(int64_t rows, const Module& module) {
    if (module.grid.cp == 1) return rows;
    const int64_t pixels =
        Times(std::max<int64_t>(1, module.size("patch")), std::max<int64_t>(1, module.size("pixel_shuffle")));
    const int64_t band = module.size("max_image") / pixels;
    return std::min(rows, rows / module.grid.cp + (rows % module.grid.cp > 0 ? 1 : 0) + band);
  }
  // Patches of so many image tokens, and the class tokens of as many images as they can begin.
  int64_t Tokens(int64_t rows, const Module& module) {
    const int64_t patches = Times(rows, Square()),
                  classes = Times(std::min(rows, lane_images_[module.name]), module.size("class_tokens"));
    return patches > std::numeric_limits<int64_t>::max() - classes ? patches : patches + classes;
  }

  // Image tokens and patches inside an encoder, and where its rows take their places in the text.
  void Images(const Block& block, const Module& module) {
    auto lane = lane_rows_.find(module.name);
    const int64_t rows = lane == lane_rows_.end() ? 0 : lane->second;
    for (const Instruction& op : block.body) {
      const string* made = SymbolOf(op.outputs, 0);
      const string own_rows = module.grid.cp > 1 ? "part_image_rows" : "image_rows";
      if (op.kind == OpKind::kPixelShuffle || op.kind == OpKind::kSliceRows) Named(made, module, own_rows);
      if (op.kind == OpKind::kPositionAndClass) Named(made, module, "tokens");
      if (op.kind == OpKind::kDropClassTokens) Named(made, module, "patches");
      const string* given = op.inputs.empty() ? nullptr : SymbolNamed(block, op.inputs[0]);
      const bool of_tokens = given && (given->ends_with(".tokens") || given->ends_with(".lane_tokens"));
      if (op.kind == OpKind::kAllGatherV && module.has_images)
        Named(made, module, of_tokens ? "lane_tokens" : "image_rows");
      if (op.kind == OpKind::kReduceScatterV && module.has_images)
        Named(made, module, of_tokens ? "tokens" : "part_image_rows");
      if (op.kind == OpKind::kMergeImages) Named(SymbolNamed(block, op.inputs[1]), module, MergedRows(module, op));
      if (op.kind == OpKind::kPixelShuffle) Room(made, LargestPart(rows, module), module, "image tokens");
      if (op.kind == OpKind::kPositionAndClass)
        Room(made, Tokens(LargestPart(rows, module), module), module, "patches and class tokens");
      if (op.kind == OpKind::kAllGatherV && module.has_images)
        Room(made, of_tokens ? Tokens(rows, module) : rows, module, "rows of a lane");
      if (op.kind != OpKind::kMergeImages || op.inputs.size() < 2 || images_.patches.empty()) continue;
      const int64_t merged =
          Times(plan_.budget.micro_samples, std::min(plan_.budget.sequence_length, images_.max_rows));
      Room(SymbolNamed(block, op.inputs[1]), merged, module, "image tokens");
    }
  }

  // The rows that take the places of one token; of one encoder they need no name.
  string MergedRows(const Module& module, const Instruction& merge) const {
    const int64_t* token = merge.FindInteger("image_token");
    string from;
    int bridges = 0;
    for (const Bridge& bridge : plan_.bridges) {
      if (bridge.to != module.name) continue;
      ++bridges;
      if (token && bridge.token == *token) from = bridge.from + ".";
    }
    return absl::StrCat(bridges > 1 ? from : "", "image_rows");
  }

  // Rows that experts receive: each rank of the group sends `sent`; at most so many of them go to one rank, and on
  // average as many as it sent.
  void Dispatch(const Block& block, const Module& module) {
    for (const Instruction& op : block.body) {
      const string* received = SymbolOf(op.outputs, 0);
      if (op.kind == OpKind::kAllToAllV && received && module.top_k() > 0) {
        const int64_t sent = RowsOf(block, op.inputs.front());
        if (sent == 0) continue;
        Named(received, module, "expert_rows");
        const int64_t ranks = module.grid.ep, most = std::min(module.top_k(), module.experts() / ranks) * ranks;
        const double planned = std::ceil(static_cast<double>(sent) * std::max(1.0, module.imbalance));
        Spread(*received, Times(sent / module.top_k(), most), planned, module);
      }
      const Group* group = index_.group(op.group);
      if (op.kind == OpKind::kReduceScatterV && received && module.experts() > 0)
        Named(received, module, "expert_rows");
      if (op.kind != OpKind::kAllGatherV || !received || !group ||
          index_.WideAxes(*group) != std::vector<Axis>{Axis::kExpertTp})
        continue;
      const string* given = SymbolNamed(block, op.inputs.front());
      auto from = given ? symbols_.find(*given) : symbols_.end();
      if (from == symbols_.end()) continue;
      Named(received, module, "expert_rows_gathered");
      const int64_t parts = module.grid.expert_tp;
      Spread(*received, Times(from->second->maximum, parts),
             static_cast<double>(Times(Planned(*from->second) - 1, parts)), module);
    }
  }

  static int64_t Planned(const Symbol& symbol) { return symbol.expected > 0 ? symbol.expected : symbol.maximum; }

  // Tokens spread over experts: memory is planned for the declared imbalance.
  void Spread(const string& name, int64_t most, double planned, const Module& module) {
    spread_.insert(name);
    Room(&name, most, module, "rows");
    auto symbol = symbols_.find(name);
    if (symbol == symbols_.end()) return;  // V4
    const auto wanted = static_cast<int64_t>(std::min(planned, static_cast<double>(most)));
    if (Planned(*symbol->second) >= wanted) return;
    Fail(&module, absl::StrCat("memory is planned for ", Planned(*symbol->second), " of ", name,
                               ", and at moe.imbalance ", module.imbalance, " ", wanted, " come"));
  }

  static const ValueType* TypeNamed(const Block& block, const string& name) {
    for (const auto* list : {&block.inputs, &block.takes}) {
      for (const Output& value : *list) {
        if (value.name == name) return &value.type;
      }
    }
    for (const Instruction& op : block.body) {
      for (const Output& value : op.outputs) {
        if (value.name == name) return &value.type;
      }
    }
    return nullptr;
  }
  static int64_t RowsOf(const Block& block, const string& name) {
    const ValueType* type = TypeNamed(block, name);
    const auto* rows = type && !type->dims.empty() ? std::get_if<int64_t>(&type->dims.front()) : nullptr;
    return rows ? *rows : 0;
  }
  static const string* SymbolNamed(const Block& block, const string& name) {
    const ValueType* type = TypeNamed(block, name);
    return type && !type->dims.empty() ? std::get_if<string>(&type->dims.front()) : nullptr;
  }

  const PlanIndex& index_;
  const Plan& plan_;
  const SampleImages images_;
  std::vector<Violation>& violations_;
  std::map<string, const Symbol*> symbols_;
  // by encoder: image tokens and images that a lane's microbatch can bring
  std::map<string, int64_t> lane_rows_, lane_images_;
  std::set<string> spread_, said_;  // sizes that depend on the choices of tokens; messages
};

}  // namespace

std::vector<Violation> VerifyRunTimeSizes(const PlanIndex& index) {
  std::vector<Violation> violations;
  Rows(index, violations).Check();
  return violations;
}

}  // namespace planwright
