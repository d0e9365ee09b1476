#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "planner/plan/expert_ops.h"
#include "planner/plan/op_table.h"
#include "planner/run/outcome/assemble_probe.h"
#include "planner/run/outcome/tensor_file.h"
#include "planner/wire/records/probe_format.h"

namespace planwright {
namespace {

// Concatenates tensors along `dim`. Their other dims are equal.
RawTensor Join(const std::vector<RawTensor>& parts, size_t dim) {
  RawTensor whole = parts[0];
  whole.shape[dim] = 0;
  int64_t outer = 1;
  for (size_t i = 0; i < dim; ++i) outer *= whole.shape[i];
  for (const RawTensor& part : parts) whole.shape[dim] += part.shape[dim];
  whole.bytes.clear();
  for (int64_t o = 0; o < outer; ++o) {
    for (const RawTensor& part : parts) {
      const size_t chunk = part.bytes.size() / outer;
      whole.bytes.append(part.bytes, o * chunk, chunk);
    }
  }
  return whole;
}

// Elements [first, first + count) along `dim`.
RawTensor Slice(const RawTensor& tensor, size_t dim, int64_t first, int64_t count) {
  RawTensor part = tensor;
  part.shape[dim] = count;
  int64_t outer = 1;
  for (size_t i = 0; i < dim; ++i) outer *= tensor.shape[i];
  part.bytes.clear();
  const size_t whole = tensor.bytes.size() / outer, row = whole / tensor.shape[dim];
  for (int64_t o = 0; o < outer; ++o) part.bytes.append(tensor.bytes, o * whole + first * row, count * row);
  return part;
}

// Joins zigzag parts: coordinate r has the chunks r and 2n - 1 - r (docs/layouts/sequence.md#zigzag).
RawTensor JoinZigzag(const std::vector<RawTensor>& parts, size_t dim) {
  std::vector<RawTensor> chunks(2 * parts.size());
  for (size_t r = 0; r < parts.size(); ++r) {
    const int64_t half = parts[r].shape[dim] / 2;
    chunks[r] = Slice(parts[r], dim, 0, half);
    chunks[chunks.size() - 1 - r] = Slice(parts[r], dim, half, half);
  }
  return Join(chunks, dim);
}

template <typename Real>
RawTensor SumOf(const std::vector<RawTensor>& parts) {
  RawTensor sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    for (size_t at = 0; at + sizeof(Real) <= sum.bytes.size(); at += sizeof(Real)) {
      Real a, b;
      std::memcpy(&a, &sum.bytes[at], sizeof a);
      std::memcpy(&b, &parts[i].bytes[at], sizeof b);
      a += b;
      std::memcpy(&sum.bytes[at], &a, sizeof a);
    }
  }
  return sum;
}

absl::StatusOr<RawTensor> Sum(const std::vector<RawTensor>& parts) {
  if (parts.size() == 1) return parts[0];
  if (parts[0].dtype == DType::kFp64) return SumOf<double>(parts);
  if (parts[0].dtype == DType::kFp32) return SumOf<float>(parts);
  return absl::UnimplementedError("a sum of " + std::string(DTypeName(parts[0].dtype)));
}

// [a, b, ...] -> [b, a, ...]
RawTensor SwapFirstDims(const RawTensor& tensor) {
  RawTensor result = tensor;
  const int64_t a = tensor.shape[0], b = tensor.shape[1];
  std::swap(result.shape[0], result.shape[1]);
  const size_t row = a * b == 0 ? 0 : tensor.bytes.size() / (a * b);
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < b; ++j)
      std::memcpy(&result.bytes[(j * a + i) * row], &tensor.bytes[(i * b + j) * row], row);
  }
  return result;
}

// What must be known of a probed value to join its parts: its module, its type, and what its first dims mean. All of
// it comes from the block that makes the value.
struct ProbedValue {
  const Module* module = nullptr;
  ValueType type;
  int64_t columns = -1;  // of the last dim, where ranks have more of it together: it is of a padded weight's rows
  enum class Dims {
    kSum,              // [1]: each lane has a term of a sum
    kSequence,         // [positions, samples, ...]
    kTokens,           // [positions * samples, ...]
    kPacked,           // [rows, ...]: the images of a lane one after the other
    kPackedWithClass,  // as kPacked, with class tokens
  } dims = Dims::kPacked;
};

// The instruction that makes the value, and the place among its outputs.
struct Maker {
  const Instruction* op = nullptr;  // null: none of the block
  size_t output = 0;

  const ValueType& type() const { return op->outputs[output].type; }
  // Whether the first dim of the value is positions and samples in one, as ops.def says it.
  bool makes_tokens() const {
    const OpSignature* signature = SignatureOf(*op);
    const OperandSignature* operand = signature ? OperandAt(signature->outputs, output) : nullptr;
    return operand != nullptr && IsOfTokens(*operand);
  }
};

Maker MakerOf(const Block& block, const std::string& value) {
  for (const Instruction& op : block.body) {
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (op.outputs[i].name == value) return {&op, i};
    }
  }
  return {};
}

// The rows of the padded weight that `value` is made with; -1: it is made otherwise.
int64_t RowsOfPaddedWeight(const Module& module, const Block& block, const std::string& value) {
  for (const Instruction& op : block.body) {
    if (op.parameters.empty() || op.outputs.empty() || op.outputs.front().name != value) continue;
    for (const Storage& storage : module.storages) {
      const Parameter& parameter = module.parameters[static_cast<size_t>(storage.parameters.front())];
      const bool shared = std::any_of(storage.shared.begin(), storage.shared.end(),
                                      [&](const SharedSlot& each) { return each.slot == op.parameters.front(); });
      if ((shared || storage.slot == op.parameters.front()) && parameter.padded) return parameter.shape.front();
    }
  }
  return -1;
}

// `source`: "BLOCK/VALUE", from the metadata of a part.
absl::StatusOr<ProbedValue> FindValue(const Plan& plan, const std::string& source) {
  const size_t slash = source.rfind('/');
  const Block* block = slash == std::string::npos ? nullptr : plan.FindBlock(source.substr(0, slash));
  const Maker maker = block ? MakerOf(*block, source.substr(slash + 1)) : Maker();
  if (!maker.op) return absl::DataLossError("a probed value comes from `" + source + "`, which is not in the plan");
  const ValueType& type = maker.type();
  ProbedValue result{plan.FindModule(block->module), type};
  if (!result.module) return absl::DataLossError("block " + block->name + " belongs to no module");
  if (maker.op->kind == OpKind::kLinear)
    result.columns = RowsOfPaddedWeight(*result.module, *block, source.substr(slash + 1));
  using Dims = ProbedValue::Dims;
  if (type.dims.size() == 1) {
    result.dims = Dims::kSum;
  } else if (result.module->carries_loss) {
    result.dims = maker.makes_tokens() ? Dims::kTokens : Dims::kSequence;
  } else if (type.dims[0] == Dim(result.module->name + ".tokens")) {
    result.dims = Dims::kPackedWithClass;
  }
  return result;
}

class ValueAssembly {
 public:
  // `microbatches`: of a step, or rounds of an evaluation.
  ValueAssembly(const Plan& plan, int64_t microbatches, std::vector<TensorFile> parts)
      : plan_(plan), microbatches_(microbatches), parts_(std::move(parts)) {}

  absl::StatusOr<TensorFile> All() {
    TensorFile file;
    for (const auto& [value, source] : Sources()) {
      absl::StatusOr<ProbedValue> probed = FindValue(plan_, source);
      if (!probed.ok()) return probed.status();
      absl::StatusOr<RawTensor> whole = WholeOf(*probed, value.second);
      if (!whole.ok()) return absl::DataLossError(value.second + ": " + std::string(whole.status().message()));
      file.tensors["outputs/" + value.second] = *std::move(whole);
    }
    return file;
  }

 private:
  // (module, name) -> "BLOCK/VALUE"
  std::map<std::pair<std::string, std::string>, std::string> Sources() const {
    std::map<std::pair<std::string, std::string>, std::string> sources;
    for (const TensorFile& part : parts_) {
      for (const auto& [key, source] : part.metadata) {
        const size_t first = key.find('/'), second = key.find('/', first + 1);
        if (second == std::string::npos) continue;
        sources[{key.substr(0, first), key.substr(second + 1)}] = source;
      }
    }
    return sources;
  }

  absl::StatusOr<RawTensor> WholeOf(const ProbedValue& value, const std::string& name) const {
    std::vector<RawTensor> pieces;  // in sample order: microbatch by microbatch, lane by lane
    for (int64_t microbatch = 0; microbatch < microbatches_; ++microbatch) {
      for (int lane = 0; lane < value.module->grid.dp; ++lane) {
        absl::StatusOr<RawTensor> piece = LaneOf(value, ProbeValueKey(value.module->name, microbatch, name), lane);
        if (!piece.ok()) return piece.status();
        pieces.push_back(*std::move(piece));
      }
    }
    using Dims = ProbedValue::Dims;
    if (value.dims == Dims::kSum) return Sum(pieces);
    RawTensor whole = Join(pieces, 0);
    if (value.dims == Dims::kPackedWithClass) whole.shape.insert(whole.shape.begin(), 1);
    if (value.dims == Dims::kTokens) {  // joined as [samples, positions, ...]
      whole.shape[1] *= whole.shape[0];
      whole.shape.erase(whole.shape.begin());
    }
    return whole;
  }

  // The value of one data-parallel lane in one microbatch, its samples first.
  absl::StatusOr<RawTensor> LaneOf(const ProbedValue& value, const std::string& key, int lane) const {
    // A dim that both axes cut is cut over cp first, so the parts over tp are joined first.
    std::vector<RawTensor> over_cp;
    const Grid& grid = value.module->grid;
    for (int cp = 0; cp < grid.cp; ++cp) {
      std::vector<RawTensor> over_tp;
      for (int tp = 0; tp < grid.tp; ++tp) {
        const RawTensor* found = FindPart(grid, tp, cp, lane, key);
        if (!found) {
          return absl::DataLossError(
              absl::StrCat("no rank of lane ", lane, " at tp ", tp, ", cp ", cp, " wrote ", key));
        }
        if (found->shape.size() != value.type.dims.size()) {
          return absl::DataLossError(
              absl::StrCat(key, " has ", found->shape.size(), " dims; the plan says ", value.type.dims.size()));
        }
        over_tp.push_back(*found);
        if (value.dims == ProbedValue::Dims::kTokens) SplitTokens(over_tp.back());
      }
      absl::StatusOr<RawTensor> part = JoinOver(Axis::kTp, value, over_tp);
      if (!part.ok()) return part.status();
      over_cp.push_back(*std::move(part));
    }
    absl::StatusOr<RawTensor> whole = JoinOver(Axis::kCp, value, over_cp);
    using Dims = ProbedValue::Dims;
    if (whole.ok() && (value.dims == Dims::kSequence || value.dims == Dims::kTokens)) return SwapFirstDims(*whole);
    return whole;
  }

  // [positions * samples, ...] -> [positions, samples, ...]
  void SplitTokens(RawTensor& tensor) const {
    const int64_t samples = std::max<int64_t>(1, plan_.budget.micro_samples);
    tensor.shape[0] /= samples;
    tensor.shape.insert(tensor.shape.begin() + 1, samples);
  }

  static absl::StatusOr<RawTensor> JoinOver(Axis axis, const ProbedValue& value, const std::vector<RawTensor>& parts) {
    const auto layout = value.type.layout.find(axis);
    if (layout == value.type.layout.end() || layout->second.state == AxisLayout::State::kReplicated) return parts[0];
    if (layout->second.state == AxisLayout::State::kPartial) return Sum(parts);
    size_t dim = layout->second.dim;
    if (value.columns >= 0 && dim + 1 == value.type.dims.size()) return Slice(Join(parts, dim), dim, 0, value.columns);
    if (value.dims == ProbedValue::Dims::kTokens && dim > 0) ++dim;  // SplitTokens made two dims of the first
    return layout->second.zigzag ? JoinZigzag(parts, dim) : Join(parts, dim);
  }

  // What the rank of these coordinates wrote; of its pipeline stages, one makes the value. Null: none did.
  const RawTensor* FindPart(const Grid& grid, int tp, int cp, int lane, const std::string& key) const {
    for (int rank = grid.first_rank; rank < grid.first_rank + grid.ranks(); ++rank) {
      if (CoordinateOf(grid, rank, Axis::kTp) != tp || CoordinateOf(grid, rank, Axis::kCp) != cp ||
          CoordinateOf(grid, rank, Axis::kDp) != lane)
        continue;
      const auto found = parts_[rank].tensors.find(key);
      if (found != parts_[rank].tensors.end()) return &found->second;
    }
    return nullptr;
  }

  const Plan& plan_;
  const int64_t microbatches_;
  const std::vector<TensorFile> parts_;
};

}  // namespace

absl::Status AssembleValues(const Plan& plan, const std::string& directory, const std::string& kind) {
  std::vector<TensorFile> parts;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    absl::StatusOr<TensorFile> part = ReadTensorFile(ProbePartPath(directory, kind, rank));
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
  }
  const int64_t microbatches = kind == "values_evaluated" ? plan.evaluation.rounds() : plan.budget.microbatches;
  absl::StatusOr<TensorFile> whole = ValueAssembly(plan, microbatches, std::move(parts)).All();
  if (!whole.ok()) return absl::DataLossError(kind + ": " + std::string(whole.status().message()));
  return WriteTensorFile(directory + "/" + kind + ".safetensors", *std::move(whole));
}

}  // namespace planwright
