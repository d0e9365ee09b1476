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
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "planner/plan/sample_images.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

// The run-time size that is the first dim of output `i`; null if there is none.
const string* SymbolOf(const std::vector<Output>& outputs, size_t i) {
  return i < outputs.size() && !outputs[i].type.dims.empty() ? std::get_if<string>(&outputs[i].type.dims.front())
                                                             : nullptr;
}

// A product that stays at the largest number if it would overflow: sizes of a plan from a file can be anything.
int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

class RunTimeSizeCheck {
 public:
  RunTimeSizeCheck(const PlanIndex& index, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), violations_(violations) {
    for (const Symbol& symbol : plan_.symbols) symbols_[symbol.name] = &symbol;
  }

  void Check() {
    for (const Role& role : plan_.roles) {
      for (const SampleList& list : SampleListsOf(plan_))
        for (const Instruction& op : list.Of(role))
          CheckRead(op);  // notes what a lane can bring, which blocks are checked by
    }
    for (const Block& block : plan_.blocks) {
      const Module* module = index_.module(block.module);
      if (!module) continue;
      for (const Instruction& op : block.body) {
        CheckStatedRows(block, op, *module);
        CheckMovedRows(block, op, *module);
        CheckMerge(block, op, *module);
      }
      CheckTokenDispatch(block, *module);
    }
    // Only rows that depend on the router may be planned below their maximum.
    for (const auto& [name, symbol] : symbols_) {
      if (routed_.contains(name) || symbol->expected == 0 || symbol->expected >= symbol->maximum) continue;
      Fail(nullptr,
           absl::StrCat("memory is planned for ", symbol->expected, " ", name, ", but ", symbol->maximum, " can come"));
    }
  }

 private:
  void Fail(const Module* module, string message) {
    if (reported_.insert(message).second) violations_.push_back({"V10", message, index_.OriginOf(-1, -1, module)});
  }

  // The run-time size has a maximum of at least `wanted`. A missing size is V4's.
  void RequireRoom(const string* name, int64_t wanted, const Module& module, const char* what) {
    auto symbol = name ? symbols_.find(*name) : symbols_.end();
    if (symbol == symbols_.end() || symbol->second->maximum >= wanted) return;
    Fail(&module,
         absl::StrCat(*name, " has room for ", symbol->second->maximum, ", but ", wanted, " ", what, " can come"));
  }

  // The rows are counted by the run-time size MODULE.what, and by no other that happens to have a large maximum.
  void RequireName(const string* name, const Module& module, const string& what) {
    const string wanted = absl::StrCat(module.name, ".", what);
    if (name && *name == wanted) return;
    Fail(&module, absl::StrCat("rows are counted by ", name ? *name : "a number", ", not by ", wanted));
  }

  // Images and documents that one read can bring. The number of samples of the lane is the size of the row counts that
  // the read makes; the data section bounds what each sample brings.
  void CheckRead(const Instruction& op) {
    const string* name = op.FindText("module");
    const Module* module = name ? index_.module(*name) : nullptr;
    if (!module || op.outputs.empty()) return;
    const int64_t sequence = plan_.budget.sequence_length;
    if (op.kind == OpKind::kReadTokens) {
      if (plan_.data.packed_documents) {
        RequireName(SymbolOf(op.outputs, op.outputs.size() - 1), *module, "documents");
        RequireRoom(SymbolOf(op.outputs, op.outputs.size() - 1), Product(plan_.budget.micro_samples, sequence), *module,
                    "documents");
      }
      return;
    }
    const bool pixels = op.kind == OpKind::kReadImages;
    if (!pixels && op.kind != OpKind::kReadImageSizes) return;
    if (pixels) RequireName(SymbolOf(op.outputs, 0), *module, "patches");
    RequireName(SymbolOf(op.outputs, pixels ? 1 : 0), *module, "images");
    if (pixels) RequireName(SymbolOf(op.outputs, 2), *module, "images");
    const SampleImages images = ImagesFor(*module);
    if (!images.any() || op.outputs.back().type.dims.empty()) return;
    const auto* samples = std::get_if<int64_t>(&op.outputs.back().type.dims.front());
    if (!samples) return;
    RequireRoom(SymbolOf(op.outputs, pixels ? 1 : 0), Product(*samples, std::min(sequence, images.max_images)), *module,
                "images");
    int64_t& most = lane_rows_[module->name];
    most = std::max(most, Product(*samples, std::min(sequence, images.max_rows)));
    int64_t& most_images = lane_images_[module->name];
    most_images = std::max(most_images, Product(*samples, std::min(sequence, images.max_images)));
    if (pixels)
      RequireRoom(SymbolOf(op.outputs, 0), Product(LargestPart(most, *module), PatchesOfToken(*module)), *module,
                  "patches");
  }

  // The pixel shuffle makes one image token of so many patches.
  static int64_t PatchesOfToken(const Module& module) {
    return Product(module.size("pixel_shuffle"), module.size("pixel_shuffle"));
  }
  // What a sample brings to an encoder; nothing where the data does not know it (V11).
  SampleImages ImagesFor(const Module& module) const {
    const EncoderData* encoder = plan_.data.FindEncoder(module.name);
    return encoder ? ImagesOfRun(plan_.data, plan_.evaluation, *encoder, plan_.budget.sequence_length) : SampleImages();
  }
  // The most image tokens of one cp rank. An image is dealt to cp ranks in bands, which are rows of image tokens. So
  // parts differ by at most one band (docs/model/vision_encoder.md#attention).
  static int64_t LargestPart(int64_t rows, const Module& module) {
    if (module.grid.cp == 1) return rows;
    const int64_t pixels =
        Product(std::max<int64_t>(1, module.size("patch")), std::max<int64_t>(1, module.size("pixel_shuffle")));
    const int64_t band = module.size("max_image") / pixels;
    return std::min(rows, rows / module.grid.cp + (rows % module.grid.cp > 0 ? 1 : 0) + band);
  }
  // The encoder's tokens for so many image tokens: their patches, and the class tokens of their images. There are at
  // most as many images as image tokens.
  int64_t EncoderTokens(int64_t rows, const Module& module) {
    const int64_t patches = Product(rows, PatchesOfToken(module)),
                  classes = Product(std::min(rows, lane_images_[module.name]), module.size("class_tokens"));
    return patches > std::numeric_limits<int64_t>::max() - classes ? patches : patches + classes;
  }

  // The run-time sizes that the table gives to dims of computes, and the room in those that a compute makes.
  void CheckStatedRows(const Block& block, const Instruction& op, const Module& module) {
    const OpSignature* signature = InfoOf(op.kind).rows.empty() ? nullptr : SignatureOf(op);
    if (!signature) return;
    const auto stated = [&](const std::vector<OperandSignature>& list, size_t i) -> const string* {
      const OperandSignature* operand = OperandAt(list, i);
      return operand && !operand->dims.empty() ? InfoOf(op.kind).FindRows(operand->dims.front().name) : nullptr;
    };
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (const string* size = stated(signature->inputs, i))
        RequireName(SymbolNamed(block, op.inputs[i]), module, *size);
    }
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const string* size = stated(signature->outputs, i);
      if (!size) continue;
      RequireName(SymbolOf(op.outputs, i), module, *size);
      if (module.has_images) RequireRoomForImages(SymbolOf(op.outputs, i), module);
    }
  }

  // Joining the rows of ranks makes the whole's size of the part's; cutting them, the other way round.
  void CheckMovedRows(const Block& block, const Instruction& op, const Module& module) {
    const bool joins = op.kind == OpKind::kAllGatherV;
    if (!joins && op.kind != OpKind::kReduceScatterV && op.kind != OpKind::kSliceRows) return;
    const string *given = op.inputs.empty() ? nullptr : SymbolNamed(block, op.inputs.front()),
                 *made = SymbolOf(op.outputs, 0);
    if (!given && !made) return;  // rows at home, whose number is known
    constexpr std::pair<const char*, const char*> kPartsAndWholes[] = {{"tokens", "lane_tokens"},
                                                                       {"patches", "lane_patches"},
                                                                       {"part_image_rows", "image_rows"},
                                                                       {"expert_rows", "expert_rows_gathered"}};
    for (const auto& [part, whole] : kPartsAndWholes) {
      if (!given || *given != absl::StrCat(module.name, ".", joins ? part : whole)) continue;
      RequireName(made, module, joins ? whole : part);
      if (joins && module.has_images) RequireRoomForImages(made, module);
      return;
    }
    Fail(&module, absl::StrCat(joins ? "joins" : "cuts", " rows that are counted by ", given ? *given : "a number"));
  }

  // A size that the rows of an encoder's images give has room for the most that a lane or a part can have.
  void RequireRoomForImages(const string* name, const Module& module) {
    const auto lane = lane_rows_.find(module.name);
    const int64_t rows = lane == lane_rows_.end() ? 0 : lane->second, part = LargestPart(rows, module);
    const auto is = [&](const char* what) { return name && *name == absl::StrCat(module.name, ".", what); };
    if (is("part_image_rows")) RequireRoom(name, part, module, "image tokens");
    if (is("image_rows")) RequireRoom(name, rows, module, "image tokens");
    if (is("patches")) RequireRoom(name, Product(part, PatchesOfToken(module)), module, "patches");
    if (is("lane_patches")) RequireRoom(name, Product(rows, PatchesOfToken(module)), module, "patches");
    if (is("tokens")) RequireRoom(name, EncoderTokens(part, module), module, "patches and class tokens");
    if (is("lane_tokens")) RequireRoom(name, EncoderTokens(rows, module), module, "patches and class tokens");
  }

  // The merge puts the image tokens of an encoder into the text; add_images adds to them.
  void CheckMerge(const Block& block, const Instruction& op, const Module& module) {
    if ((op.kind != OpKind::kMergeImages && op.kind != OpKind::kAddImages) || op.inputs.size() < 2) return;
    const string* given = SymbolNamed(block, op.inputs[1]);
    RequireName(given, module, MergedRows(module, op));
    const Bridge* from = MergedBridge(module, op);
    const Module* encoder = from ? index_.module(from->from) : nullptr;
    const SampleImages images = encoder ? ImagesFor(*encoder) : SampleImages();
    if (!images.any()) return;
    RequireRoom(given, Product(plan_.budget.micro_samples, std::min(plan_.budget.sequence_length, images.max_rows)),
                module, "image tokens");
  }

  // The run-time size of the rows that a merge puts into the text. If several encoders feed the model, the name says
  // which encoder; the merge names its encoder by the token.
  string MergedRows(const Module& module, const Instruction& merge) const {
    const auto bridges = std::count_if(plan_.bridges.begin(), plan_.bridges.end(),
                                       [&](const Bridge& bridge) { return bridge.to == module.name; });
    const Bridge* from = MergedBridge(module, merge);
    return absl::StrCat(bridges > 1 && from ? from->from + "." : "", "image_rows");
  }
  const Bridge* MergedBridge(const Module& module, const Instruction& merge) const {
    const int64_t* token = merge.FindInteger("image_token");
    const Bridge* found = nullptr;
    for (const Bridge& bridge : plan_.bridges) {
      if (bridge.to == module.name && token && bridge.token == *token) found = &bridge;
    }
    return found;
  }

  // Rows that experts receive (docs/model/mixture_of_experts.md#token-dispatch). Each ep rank sends `sent` rows. At
  // most min(top_k, experts here) rows of each token go to one rank, from all ep ranks. On average a rank receives as
  // many rows as it sends, and memory is planned for moe.imbalance times that; for all that can come where the recipe
  // has no moe.imbalance.
  void CheckTokenDispatch(const Block& block, const Module& module) {
    for (const Instruction& op : block.body) {
      const string* received = SymbolOf(op.outputs, 0);
      const bool selects = op.kind == OpKind::kSelectRows && op.inputs.size() > 2;
      if ((op.kind == OpKind::kAllToAllV || selects) && received && module.top_k() > 0) {
        // Where all tokens come to all ranks, each rank brings its share of their rows.
        const int64_t sent = selects ? Product(RowsOf(block, op.inputs[2]) / module.grid.ep, module.top_k())
                                     : RowsOf(block, op.inputs.front());
        if (sent == 0) continue;
        RequireName(received, module, "expert_rows");
        const int64_t ranks = module.grid.ep, most = std::min(module.top_k(), module.experts() / ranks) * ranks;
        const int64_t all = Product(sent / module.top_k(), most);
        const double planned = module.imbalance > 0
                                   ? std::ceil(static_cast<double>(sent) * std::max(1.0, module.imbalance))
                                   : static_cast<double>(all);
        CheckRoutedSize(*received, all, planned, module);
      }
      const Group* group = index_.group(op.group);
      if (op.kind != OpKind::kAllGatherV || !received || !group ||
          index_.WideAxes(*group) != std::vector<Axis>{Axis::kExpertTp})
        continue;
      const string* given = SymbolNamed(block, op.inputs.front());
      auto from = given ? symbols_.find(*given) : symbols_.end();
      if (from == symbols_.end()) continue;
      const int64_t parts = module.grid.expert_tp;
      CheckRoutedSize(*received, Product(from->second->maximum, parts),
                      // The mean of several ranks is rounded once.
                      static_cast<double>(Product(Planned(*from->second) - 1, parts)), module);
    }
  }

  // Rows that memory is planned for; an expected number of 0 means the maximum.
  static int64_t Planned(const Symbol& symbol) { return symbol.expected > 0 ? symbol.expected : symbol.maximum; }

  // A run-time size that depends on the router: it has room for `most` rows, and memory is planned for at least
  // `planned`.
  void CheckRoutedSize(const string& name, int64_t most, double planned, const Module& module) {
    routed_.insert(name);
    RequireRoom(&name, most, module, "rows");
    auto symbol = symbols_.find(name);
    if (symbol == symbols_.end()) return;  // V4
    const auto wanted = static_cast<int64_t>(std::min(planned, static_cast<double>(most)));
    if (Planned(*symbol->second) >= wanted) return;
    Fail(&module, absl::StrCat("memory is planned for ", Planned(*symbol->second), " ", name, ", but ", wanted,
                               " come at moe.imbalance ", module.imbalance));
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
  // The first dim of a value if it is a number, else 0.
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
  std::vector<Violation>& violations_;
  std::map<string, const Symbol*> symbols_;
  // by encoder: the most image tokens and images of a lane's microbatch
  std::map<string, int64_t> lane_rows_, lane_images_;
  std::set<string> routed_;    // run-time sizes that depend on the router
  std::set<string> reported_;  // messages
};

}  // namespace

std::vector<Violation> VerifyRunTimeSizes(const PlanIndex& index) {
  std::vector<Violation> violations;
  RunTimeSizeCheck(index, violations).Check();
  return violations;
}

}  // namespace planwright
