#include "tests/executor/ops/op_cut.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isin.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "executor/base/zigzag.h"
#include "planner/plan/image_bands.h"
#include "planner/plan/op_table.h"

namespace planwright::executor::op_cases {
namespace {

using std::string;

// Where image rows went in the sequence, counted in the part, or -1. The notation says nothing of such numbers.
bool ArePositions(const string& kind, bool input, size_t at) {
  return at == 1 && (input ? kind == "merge_images_grad" || kind == "add_images_grad"
                           : kind == "merge_images" || kind == "add_images");
}

// The index of a dim of an operand with `dims` dims: as written, or of leading dims 0, 1, ...
char IndexAt(const OperandSignature& operand, size_t dims, size_t dim) {
  const size_t leading = operand.leading ? dims - operand.dims.size() : 0;
  return dim < leading ? static_cast<char>('0' + dim) : operand.dims[dim - leading].index;
}

std::optional<size_t> DimOf(const OperandSignature& operand, const at::Tensor& x, char index) {
  for (size_t dim = 0; dim < static_cast<size_t>(x.dim()); ++dim) {
    if (IndexAt(operand, static_cast<size_t>(x.dim()), dim) == index) return dim;
  }
  return std::nullopt;
}

class Cut {
 public:
  Cut(const Table& table, const Instance& whole, char index, Axis axis, int parts)
      : table_(table), whole_(whole), index_(index), axis_(axis), parts_(parts) {
    for (const CutLine& line : table.cuts) {
      const std::vector<string> kinds = absl::StrSplit(line.kinds, ' ');
      if (line.index == index && std::find(kinds.begin(), kinds.end(), whole.entry->name) != kinds.end()) line_ = &line;
    }
    const auto bind = [&](const std::vector<OperandSignature>& list, const Tensors& tensors) {
      for (size_t i = 0; i < tensors.size(); ++i) Bind(*OperandAt(list, i), tensors[i]);
    };
    bind(whole.signature.inputs, whole.inputs);
    bind(whole.signature.parameters, whole.parameters);
    bind(whole.signature.gradients, whole.gradients);
    bind(whole.signature.outputs, whole.outputs);
    units_ = Units();
  }

  // Whether there are enough units for the parts.
  bool Fits() const { return HasBands() || units_ >= parts_; }

  // What is wrong, or "".
  string Problem() {
    std::vector<Tensors> outputs, added;
    try {
      for (int r = 0; r < parts_; ++r) {
        auto [out, gradients] = RunPart(r);
        TORCH_CHECK(out.size() == whole_.outputs.size(), "it makes ", out.size(), " values");
        outputs.push_back(std::move(out));
        added.push_back(std::move(gradients));
      }
    } catch (const c10::Error& error) {
      return string("the handler refuses a part: ") + error.what_without_backtrace();
    }
    for (size_t i = 0; i < whole_.outputs.size(); ++i) {
      const OperandSignature& operand = *OperandAt(whole_.signature.outputs, i);
      if (operand.reduction == Reduction::kNone && !DimOf(operand, whole_.outputs[i], index_)) {
        if (string problem = ReaderProblem(i, outputs); !problem.empty())
          return absl::StrCat("output ", i, " in its reader ", problem);
      } else if (string problem = Compare(operand, i, whole_.outputs[i], outputs, true,
                                          CutsPositions() && ArePositions(whole_.entry->name, false, i));
                 !problem.empty()) {
        return absl::StrCat("output ", i, " ", problem);
      }
    }
    for (size_t i = 0; i < whole_.added.size(); ++i) {
      // Along cp a rank adds to its part of a weight that is whole.
      const string problem =
          Compare(whole_.signature.gradients[i], i, whole_.added[i], added, axis_ == Axis::kTp, false);
      if (!problem.empty()) return absl::StrCat("gradient ", i, " ", problem);
    }
    return "";
  }

 private:
  void Bind(const OperandSignature& operand, const at::Tensor& x) {
    const size_t leading = static_cast<size_t>(x.dim()) - operand.dims.size();
    for (size_t i = 0; i < operand.dims.size(); ++i) {
      if (!operand.dims[i].name.empty()) sizes_[operand.dims[i].name] = x.size(static_cast<int64_t>(leading + i));
    }
    if (leading == 2) sizes_["0"] = x.size(0), sizes_["1"] = x.size(1);
    for (const SignatureDim& dim : operand.dims) {
      if (dim.index != index_ || dim.factors.empty()) continue;
      product_ = x.size(0);
      factors_ = dim.factors;
    }
  }

  bool HasBands() const {
    return index_ == 's' && (sizes_.contains("sN") || sizes_.contains("sP") || sizes_.contains("sR"));
  }

  // How many equal pieces the dims of the index have.
  int64_t Units() const {
    if (HasBands()) return 0;
    if (line_ && !line_->units.empty()) return Number(line_->units, whole_.c->attributes);
    int64_t units = -1;
    for (const auto& [name, size] : sizes_) {
      if (name[0] != index_) continue;
      if (units >= 0 && units != size)
        throw CaseError(absl::StrCat(whole_.name(), ": dims of index ", string(1, index_), " have sizes ", units,
                                     " and ", size, ", and no CutLine says how"));
      units = size;
    }
    if (units >= 0) return units;
    // Only a product has the index.
    units = product_;
    for (size_t i = 1; i < factors_.size(); ++i) units /= sizes_.at(factors_[i]);
    return units;
  }

  bool CutsPositions() const { return index_ == 's' || index_ == 't'; }
  bool IsZigzag() const { return axis_ == Axis::kCp && CutsPositions(); }

  // The units of part r.
  at::Tensor UnitsOf(int r) const {
    const at::Tensor all = at::arange(units_, at::kLong);
    if (IsZigzag()) return ZigzagPart(all, 0, r, parts_);
    const bool whole_parameters = axis_ == Axis::kCp && InfoOf(whole_.entry->kind).FindAttribute("parameter_cp");
    const bool even = (line_ && line_->even) || whole_parameters;
    if (even && units_ % parts_ != 0) throw CaseError(whole_.name() + ": its parts must be equal");
    const auto begin = [&](int64_t part) {
      // Of equal parts the first gives a unit to the second.
      const int64_t at = units_ * part / parts_;
      return part == 1 && !even && units_ % parts_ == 0 && at > 1 ? at - 1 : at;
    };
    return all.narrow(0, begin(r), begin(r + 1) - begin(r));
  }

  // The segments of a dim, each of which is cut by itself.
  std::vector<int64_t> SegmentsOf(const SignatureDim& dim, int64_t size) const {
    // "f~": what is joined, or split
    if (dim.name.empty() && dim.factors.empty()) return whole_.c->parts_of_f;
    std::vector<int64_t> segments;
    bool more = true;
    for (const OpInfo::Parts& parts : whole_.entry->parts) {
      if (parts.name != dim.name) continue;
      // Those of the input of add_linear: what it adds to, and what is before and behind it.
      const auto first = whole_.c->attributes.find("first");
      if (parts.passed && first != whole_.c->attributes.end()) segments.push_back(std::get<int64_t>(first->second));
      if (parts.passed) segments.push_back(Number("width", whole_.c->attributes));
      if (parts.sizes.empty()) continue;  // those of a weight: one in these cases
      for (const Expression& part : parts.sizes) segments.push_back(Number(part, whole_.c->attributes));
      more = parts.more;
    }
    const int64_t rest = size - std::accumulate(segments.begin(), segments.end(), int64_t{0});
    if (rest < 0 || (rest > 0 && !more))
      throw CaseError(absl::StrCat(whole_.name(), ": the parts of ", dim.name, " are not ", size));
    if (more) segments.push_back(rest);
    return segments;
  }

  // Which elements of a dim part r has.
  at::Tensor Selection(const OperandSignature& operand, const at::Tensor& x, size_t dim, int r) const {
    const size_t leading = static_cast<size_t>(x.dim()) - operand.dims.size();
    const SignatureDim own = dim < leading ? SignatureDim{} : operand.dims[dim - leading];
    const int64_t size = x.size(static_cast<int64_t>(dim));
    if (HasBands()) return BandRows(own.name, r);
    if (operand.of_rank && !own.factors.empty()) {
      // Rows behind the dispatch: those of the part's tokens, in their order.
      const at::Tensor token = SlotsOfRows().div(size / units_, "floor");
      return at::isin(token, UnitsOf(r)).nonzero().squeeze(1);
    }
    Tensors selected;
    int64_t at = 0;
    // A leading dim is one segment, and so is a dim of what is joined, or what a split makes.
    for (int64_t segment : dim < leading || operand.repeats ? std::vector<int64_t>{size} : SegmentsOf(own, size)) {
      if (segment % units_ != 0)
        throw CaseError(absl::StrCat(whole_.name(), ": a segment of ", segment, " for ", units_, " units"));
      const int64_t each = segment / units_;
      selected.push_back((UnitsOf(r).unsqueeze(1) * each + at::arange(each, at::kLong)).reshape({-1}) + at);
      at += segment;
    }
    return at::cat(selected);
  }

  // i64 [rows]: the slot (token k + j) of each row behind the dispatch.
  const at::Tensor& SlotsOfRows() const {
    const auto find = [&](const std::vector<OperandSignature>& list, const Tensors& tensors) -> const at::Tensor* {
      for (size_t i = 0; i < tensors.size(); ++i) {
        const OperandSignature& operand = *OperandAt(list, i);
        if (IsOrder(operand)) return &tensors[i];
      }
      return nullptr;
    };
    const at::Tensor* order = find(whole_.signature.inputs, whole_.inputs);
    if (!order) order = find(whole_.signature.outputs, whole_.outputs);
    if (!order) throw CaseError(whole_.name() + ": rows without their order");
    return *order;
  }
  static bool IsOrder(const OperandSignature& operand) {
    return operand.of_rank && operand.dtype == OperandSignature::DTypeClass::kInt64 && operand.dims.size() == 1 &&
           !operand.dims[0].factors.empty();
  }

  // Rows of part r of the lane's images, of "sN" tokens, "sP" patches or "sR" image tokens.
  at::Tensor BandRows(const string& name, int r) const {
    const at::Tensor* grid = nullptr;
    for (size_t i = 0; i < whole_.inputs.size(); ++i) {
      const OperandSignature& operand = whole_.signature.inputs[i];
      if (operand.dims.size() == 2 && operand.dims[1].number == 2) {
        grid = &whole_.inputs[i];
        break;
      }
    }
    const int64_t factor = Number("factor", whole_.c->attributes);
    std::vector<std::array<int64_t, 2>> grids;
    for (int64_t i = 0; i < grid->size(0); ++i)
      grids.push_back({(*grid)[i][0].item<int64_t>(), (*grid)[i][1].item<int64_t>()});
    int64_t first = 0, count = 0;
    const std::vector<std::vector<ImageRows>> all = DealBands(grids, factor, parts_);
    for (int part = 0; part <= r; ++part) {
      first += count, count = 0;
      for (const ImageRows& rows : all[static_cast<size_t>(part)]) {
        const int64_t patches = rows.count * grids[static_cast<size_t>(rows.image)][1];
        const bool tokens = name == "sN" && rows.has_class_tokens();
        count += name == "sR" ? patches / (factor * factor)
                              : patches + (tokens ? Number("class_tokens", whole_.c->attributes) : 0);
      }
    }
    return at::arange(first, first + count, at::kLong);
  }

  // From numbers that count the whole to numbers that count part r; -1 where it has nothing of them, or the whole is
  // itself a part without them.
  at::Tensor InPart(const at::Tensor& numbers, int64_t per_unit, int r) const {
    const at::Tensor own = UnitsOf(r), local = at::empty({units_}, at::kLong).fill_(-1);
    local.index_copy_(0, own, at::arange(own.size(0), at::kLong));
    const at::Tensor absent = numbers < 0;
    const at::Tensor unit = local.index_select(0, numbers.clamp_min(0).div(per_unit, "floor")).masked_fill(absent, -1);
    return at::where(unit < 0, unit, unit * per_unit + numbers.remainder(per_unit));
  }

  // What part r has of an operand.
  at::Tensor PartOf(const OperandSignature& operand, const at::Tensor& x, bool positions, int r) const {
    if (positions) return InPart(x, sizes_.at("B"), r);
    const auto dim = DimOf(operand, x, index_);
    if (!dim) return x;
    const at::Tensor part = x.index_select(static_cast<int64_t>(*dim), Selection(operand, x, *dim, r));
    return IsOrder(operand) ? InPart(part, x.size(0) / units_, r) : part;
  }

  std::pair<Tensors, Tensors> RunPart(int r) const {
    const string& kind = whole_.entry->name;
    Tensors inputs, parameters, buffers, outputs;
    for (size_t i = 0; i < whole_.inputs.size(); ++i) {
      inputs.push_back(PartOf(*OperandAt(whole_.signature.inputs, i), whole_.inputs[i],
                              CutsPositions() && ArePositions(kind, true, i), r));
    }
    const auto slot = [&](const OperandSignature& operand, const at::Tensor& x) {
      return axis_ == Axis::kTp ? PartOf(operand, x, false, r) : x;
    };
    for (size_t i = 0; i < whole_.parameters.size(); ++i)
      parameters.push_back(slot(whole_.signature.parameters[i], whole_.parameters[i]));
    for (size_t i = 0; i < whole_.gradients.size(); ++i)
      buffers.push_back(slot(whole_.signature.gradients[i], whole_.gradients[i]).clone().fill_(0.5));
    for (size_t i = 0; i < whole_.outputs.size(); ++i)
      outputs.push_back(PartOf(*OperandAt(whole_.signature.outputs, i), whole_.outputs[i],
                               CutsPositions() && ArePositions(kind, false, i), r));
    const Tensors made =
        RunKind(*whole_.entry, AttributesOf(r), CoordinatesOfCase(r), inputs, parameters, buffers, outputs);
    for (at::Tensor& buffer : buffers) buffer = buffer - 0.5;
    return {made, buffers};
  }

  Attributes AttributesOf(int r) const {
    Attributes attributes = whole_.c->attributes;
    if (line_) {
      for (const string& name : std::vector<string>(absl::StrSplit(line_->along, ' ', absl::SkipEmpty())))
        if (attributes.contains(name)) attributes[name] = Number(name, attributes) * UnitsOf(r).size(0) / units_;
    }
    if (axis_ != Axis::kCp) return attributes;
    const OpInfo& info = InfoOf(whole_.entry->kind);
    if (info.FindAttribute("cp")) attributes["cp"] = int64_t{parts_};
    if (info.FindAttribute("zigzag")) attributes["zigzag"] = int64_t{1};
    if (info.FindAttribute("parameter_cp")) attributes["parameter_cp"] = int64_t{parts_};
    return attributes;
  }

  RankCoordinates CoordinatesOfCase(int r) const {
    if (axis_ == Axis::kTp) return {.tp = parts_, .tp_rank = r, .cp = whole_.c->cp, .cp_rank = whole_.c->cp_rank};
    return {.cp = parts_, .cp_rank = r};
  }

  static string Gap(const at::Tensor& found, const at::Tensor& wanted, double scale) {
    if (found.sizes() != wanted.sizes()) return absl::StrCat("has ", found.dim(), " dims of other sizes than its part");
    if (found.numel() == 0) return "";
    const double gap = (found.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>();
    return gap <= kAllowed * scale ? "" : absl::StrCat("is off by ", gap, " where numbers are up to ", scale);
  }
  static double ScaleOf(const at::Tensor& x) {
    const double scale = x.numel() == 0 ? 0 : x.to(at::kDouble).abs().max().item<double>();
    return scale > 0 ? scale : 1;
  }

  // What parts made of output (or gradient) i against the whole. `cut`: a part that has the index is one.
  string Compare(const OperandSignature& operand, size_t i, const at::Tensor& whole, const std::vector<Tensors>& made,
                 bool cut, bool positions) const {
    const double scale = ScaleOf(whole);
    if (positions || (cut && DimOf(operand, whole, index_))) {
      for (int r = 0; r < parts_; ++r) {
        const string problem = Gap(made[static_cast<size_t>(r)][i], PartOf(operand, whole, positions, r), scale);
        if (!problem.empty()) return absl::StrCat("of part ", r, " ", problem);
      }
      return "";
    }
    for (const Tensors& own : made) {
      if (own[i].sizes() != made[0][i].sizes()) return "has terms of several sizes";
    }
    const string problem = Gap(Joined(operand, i, made), whole, scale);
    return problem.empty() ? "" : "joined " + problem;
  }

  // What ranks make of an output of theirs: of terms the sum, of maxima the largest.
  static at::Tensor Joined(const OperandSignature& operand, size_t output, const std::vector<Tensors>& made) {
    at::Tensor all = made[0][output];
    for (size_t r = 1; r < made.size(); ++r) {
      const at::Tensor& own = made[r][output];
      all = operand.reduction == Reduction::kMaximum ? at::maximum(all, own) : all + own;
    }
    return all;
  }

  // An output that ranks never join: the next instruction takes each rank's own, beside others that are joined, and
  // makes terms.
  string ReaderProblem(size_t output, const std::vector<Tensors>& made) const {
    const std::vector<OpCase::Stage>& stages = whole_.c->stages;
    for (size_t k = 1; k < stages.size(); ++k) {
      if (stages[k - 1].kind != whole_.entry->name) continue;
      const auto read = [&](const auto& value_of) {
        Tensors inputs;
        for (const auto& [input, name] : stages[k].links)
          inputs.push_back(value_of(static_cast<size_t>(std::stoi(name.substr(name.find('o') + 1)))));
        return RunKind(table_[stages[k].kind], whole_.c->attributes, {}, inputs, {}, {})[0];
      };
      std::vector<Tensors> terms;
      for (const Tensors& own : made)
        terms.push_back(
            {read([&](size_t i) { return i == output ? own[i] : Joined(whole_.signature.outputs[i], i, made); })});
      at::Tensor sum = terms[0][0];
      for (size_t r = 1; r < terms.size(); ++r) sum = sum + terms[r][0];
      const at::Tensor wanted = read([&](size_t i) { return whole_.outputs[i]; });
      return Gap(sum, wanted, ScaleOf(wanted));
    }
    throw CaseError(whole_.name() + ": nothing reads what its ranks do not join");
  }

  const Table& table_;
  const Instance& whole_;
  const char index_;
  const Axis axis_;
  const int parts_;
  const CutLine* line_ = nullptr;
  std::map<string, int64_t> sizes_;  // of the names in the notation
  int64_t product_ = 0;              // size of a dim that is a product with the index, and its factors
  std::vector<string> factors_;
  int64_t units_ = 0;
};

}  // namespace

std::optional<string> CutProblem(const Table& table, const Instance& whole, char index, Axis axis, int parts) {
  Cut cut(table, whole, index, axis, parts);
  if (!cut.Fits()) return std::nullopt;
  return cut.Problem();
}

}  // namespace planwright::executor::op_cases
