// What ops.def says may be cut, cut. For every compute kind and every index that an axis may cut, the handler runs on
// 2, 3 and 4 parts of the operands, at the coordinates of the axis. The parts must make up what it makes of the whole:
// an output with the index is cut in the same way, an output without it is a sum of terms. And where an operand may be
// a term of a sum (mark +), the outputs are terms too.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isin.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "executor/zigzag.h"
#include "planner/plan/image_bands.h"
#include "planner/plan/op_table.h"
#include "tests/executor/ops/op_cases.h"

namespace planwright::executor::cut_test {
namespace {

using namespace op_cases;
using std::string;

// The same sums in another order: roundings of fp64, relative to the largest number.
constexpr double kAllowed = 1e-12;

// Kinds whose operands have no index notation: they are the cut.
const std::set<string> kSlices = {"local_slice", "slice_rows"};

// A + that says something else than that the kind is linear.
const std::set<string> kNotLinear = {
    "cross_entropy_sums",  // each rank reads its own parts, which are never added up, and makes a term
};

// Causal and packed attention: without cp, inputs 0 and 1 of the form with cp are one input, joined along features.
bool IsJoinedWithoutCp(const string& kind) { return kind == "causal_attention" || kind == "packed_attention"; }

// Where image rows went in the sequence, counted in the part, or -1. The notation says nothing of such numbers.
bool ArePositions(const string& kind, bool input, size_t at) {
  return at == 1 && ((kind == "merge_images" && !input) || (kind == "merge_images_grad" && input));
}

// One instruction on whole operands, and what it makes.
struct Instance {
  const OpCase* c = nullptr;
  const Entry* entry = nullptr;
  bool over_cp = false;  // it is in the form with cp
  OpSignature signature;
  Tensors inputs, parameters, gradients, outputs, added;

  string name() const { return absl::StrCat(entry->name, " (", c->name, ")"); }
};

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

// Those that may be cut.
std::set<char> IndicesOf(const OpSignature& signature) {
  std::set<char> indices;
  for (const auto* list : {&signature.inputs, &signature.parameters, &signature.gradients, &signature.outputs}) {
    for (const OperandSignature& operand : *list) {
      // Row counts are a rank's own, in as many dims as they like. Other leading dims are two in these cases.
      if (operand.leading && !operand.of_rank) indices.insert({'0', '1'});
      for (const SignatureDim& dim : operand.dims) {
        if (dim.index >= 'a' && dim.index <= 'z') indices.insert(dim.index);
      }
    }
  }
  return indices;
}

bool HasIndex(const std::vector<OperandSignature>& list, char index) {
  return std::any_of(list.begin(), list.end(), [&](const OperandSignature& operand) {
    return (operand.leading && absl::ascii_isdigit(static_cast<unsigned char>(index))) ||
           std::any_of(operand.dims.begin(), operand.dims.end(),
                       [&](const SignatureDim& dim) { return dim.index == index; });
  });
}

// Whether plans may cut the index over the axis, in this form of the kind.
bool AxisCuts(const Entry& entry, bool over_cp, char index, Axis axis) {
  // What finds its part of the vocabulary by the tp coordinate is cut there and nowhere else over tp.
  if (axis == Axis::kTp) return index == 'v' || (index != 's' && !IndicesOf(entry.signature(over_cp)).contains('v'));
  if (index == 'v') return false;
  const OpInfo& info = InfoOf(entry.kind);
  // With these attributes the kind has a part of the positions, or of the features, and of nothing else.
  if (info.FindAttribute("cp")) return index == 's' || (!over_cp && index == 't');
  if (info.FindAttribute("parameter_cp")) return index == 'f';
  // Along cp no weight is cut.
  const OpSignature signature = entry.signature(over_cp);
  return !HasIndex(signature.parameters, index) && !HasIndex(signature.gradients, index);
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
                                          index_ == 's' && ArePositions(whole_.entry->name, false, i));
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

  bool IsZigzag() const { return axis_ == Axis::kCp && (index_ == 's' || index_ == 't'); }

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
      if (parts.name != dim.name || parts.sizes.empty()) continue;  // those of a weight: one in these cases
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

  // From numbers that count the whole to numbers that count part r; -1 where it has nothing of them.
  at::Tensor InPart(const at::Tensor& numbers, int64_t per_unit, int r) const {
    const at::Tensor own = UnitsOf(r), local = at::empty({units_}, at::kLong).fill_(-1);
    local.index_copy_(0, own, at::arange(own.size(0), at::kLong));
    const at::Tensor unit = local.index_select(0, numbers.div(per_unit, "floor"));
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
                              index_ == 's' && ArePositions(kind, true, i), r));
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
                               index_ == 's' && ArePositions(kind, false, i), r));
    const Tensors made =
        RunKind(*whole_.entry, AttributesOf(r), CoordinatesOfCase(r), inputs, parameters, buffers, outputs);
    for (at::Tensor& buffer : buffers) buffer = buffer - 0.5;
    return {made, buffers};
  }

  Attributes AttributesOf(int r) const {
    Attributes attributes = whole_.c->attributes;
    if (line_) {
      for (const string& name : std::vector<string>(absl::StrSplit(line_->along, ' ', absl::SkipEmpty())))
        attributes[name] = Number(name, attributes) * UnitsOf(r).size(0) / units_;
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

// --- What is run.

std::vector<string> NamesOf(const char* prefix, const Named& values, size_t stage) {
  std::vector<string> names;
  for (size_t i = 0; values.contains(absl::StrCat(stage, ".", prefix, i)); ++i)
    names.push_back(absl::StrCat(stage, ".", prefix, i));
  return names;
}

// The values of a case by the names of the form with cp. `queries`: features of input 0 in that form.
Named InFormWithCp(const OpCase& c, const Named& values, int64_t queries) {
  if (!IsJoinedWithoutCp(c.stages[0].kind)) return values;
  Named made;
  for (const auto& [name, value] : values) {
    const size_t at = name.find('i');
    if (at == string::npos) {
      made[name] = value;
    } else if (name[at + 1] == '0') {
      made[name] = value.narrow(-1, 0, queries);
      made[string(name).replace(at + 1, 1, "1")] = value.narrow(-1, queries, value.size(-1) - queries);
    } else {
      made[string(name).replace(at + 1, 1, string(1, static_cast<char>(name[at + 1] + 1)))] = value;
    }
  }
  return made;
}

// Every instruction of a case: its forward kinds, and their backward kinds as the table wires them. `with_cp`: a case
// of the plain form, whose operands are named and split as in the form with cp.
std::vector<Instance> InstancesOf(const Table& table, const OpCase& c, bool with_cp) {
  Named values = RunForward(table, c, FreshOperands(table, c));
  std::vector<Wiring> backward = BackwardOf(table, c);
  AddCotangents(c, backward, values);
  const bool over_cp = with_cp || c.cp > 1;
  const int64_t queries = with_cp ? values.at("0.o0").size(-1) : 0;  // attention: as wide as what it makes of them
  const Named forward = with_cp ? InFormWithCp(c, values, queries) : values;
  std::vector<Instance> all;
  const auto add = [&](const Entry& entry) -> Instance& {
    Instance& instance = all.emplace_back();
    instance.c = &c, instance.entry = &entry, instance.over_cp = over_cp;
    instance.signature = entry.signature(over_cp);
    return instance;
  };
  for (size_t k = 0; k < c.stages.size(); ++k) {
    Instance& instance = add(table[c.stages[k].kind]);
    instance.inputs = Of(forward, NamesOf("i", forward, k));
    instance.parameters = Of(forward, NamesOf("p", forward, k));
    instance.outputs = Of(forward, NamesOf("o", forward, k));
  }
  for (const Wiring& wiring : backward) {
    const Gradients made = RunBackward(c, wiring, values);
    Named results = forward;
    Named named;
    for (size_t i = 0; i < made.results.size(); ++i) named[wiring.results.at(i)] = made.results[i];
    if (with_cp) named = InFormWithCp(c, named, queries);
    results.insert(named.begin(), named.end());
    std::vector<string> operands = wiring.operands, outputs = wiring.results;
    if (with_cp) {
      for (const Entry::Transpose& line : wiring.entry->transposes) {
        const auto over_cp_names = NamesIn(c, line);
        if (!line.over_cp || !over_cp_names) continue;
        operands.clear();
        for (const string& name : over_cp_names->operands) {
          if (results.contains(name)) operands.push_back(name);  // not so document_ends, if there are none
        }
        outputs = over_cp_names->results;
      }
    }
    Instance& instance = add(*wiring.entry);
    instance.inputs = Of(results, operands);
    instance.parameters = Of(results, wiring.parameters);
    instance.outputs = Of(results, outputs);
    for (string name : wiring.gradients) instance.gradients.push_back(values.at(name.erase(name.find('d'), 1)));
    instance.added = made.added;
  }
  return all;
}

// "linear i over tp"
string NameOf(const Entry& entry, bool over_cp, char index, Axis axis) {
  return absl::StrCat(entry.name, over_cp ? " with cp " : " ", string(1, index), " over ", string(AxisName(axis)));
}

bool HasBias(const OpCase& c) { return c.stages[0].kind == "linear" && c.values.contains("0.p1"); }

struct Covered {
  std::map<string, std::set<int>> cuts;  // by name: numbers of parts
  std::set<string> terms;                // "linear 0": inputs with a mark +
  int runs = 0;
};

// Input by input, a term of a sum in place of the sum: outputs and gradients must be terms, too.
void AddTermProblems(const Instance& whole, std::vector<string>& problems, Covered* covered) {
  const string& kind = whole.entry->name;
  if (kNotLinear.contains(kind) || (kind == "linear" && HasBias(*whole.c))) return;
  const OpCase& c = *whole.c;
  const RankCoordinates rank = {.cp = c.cp, .cp_rank = c.cp_rank, .ep = c.ep, .ep_rank = c.ep_rank};
  for (size_t at = 0; at < whole.inputs.size(); ++at) {
    const OperandSignature& operand = *OperandAt(whole.signature.inputs, at);
    if (!operand.linear || (operand.repeats && at > 0)) continue;
    if (kind == "linear_weight_grad" && at == 1 && HasBias(c)) continue;  // as in Problems below
    // What adds, joins or splits takes terms of all its inputs together.
    const size_t end = operand.repeats ? whole.inputs.size() : at + 1;
    if (covered) covered->terms.insert(absl::StrCat(kind, whole.over_cp ? " with cp " : " ", at));
    Tensors first = whole.inputs, second = whole.inputs;
    for (size_t i = at; i < end; ++i) {
      first[i] = at::randn(whole.inputs[i].sizes(), at::kDouble);
      second[i] = whole.inputs[i] - first[i];
    }
    Tensors buffers;
    for (const at::Tensor& gradient : whole.gradients) buffers.push_back(gradient.clone().fill_(0.5));
    const auto run = [&](const Tensors& inputs) {
      return RunKind(*whole.entry, c.attributes, rank, inputs, whole.parameters, buffers, whole.outputs);
    };
    const Tensors a = run(first), b = run(second);
    const auto check = [&](const at::Tensor& sum, const at::Tensor& wanted, const string& what) {
      if (sum.numel() == 0) return;
      const double gap = (sum - wanted).abs().max().item<double>();
      // Terms may be larger than their sum.
      if (gap <= 10 * kAllowed * (1 + wanted.abs().max().item<double>())) return;
      problems.push_back(
          absl::StrCat(kind, " (", c.name, ") is not linear in input ", at, ": ", what, " is off by ", gap));
    };
    for (size_t i = 0; i < whole.outputs.size(); ++i) check(a[i] + b[i], whole.outputs[i], absl::StrCat("output ", i));
    for (size_t i = 0; i < buffers.size(); ++i) check(buffers[i] - 0.5, whole.added[i], absl::StrCat("gradient ", i));
  }
}

// What is wrong with the cuts of one case. `kind`: of this kind only; "": of all.
std::vector<string> Problems(const Table& table, const OpCase& c, const string& kind, Covered* covered = nullptr) {
  std::vector<string> problems;
  const auto cut = [&](const Instance& instance, Axis axis) {
    if (!kind.empty() && instance.entry->name != kind) return;
    for (char index : IndicesOf(instance.signature)) {
      if (!AxisCuts(*instance.entry, instance.over_cp, index, axis)) continue;
      // A bias would be in every term: rule V4 refuses the linear, and with it its backward.
      if (absl::StartsWith(instance.entry->name, "linear") && HasBias(c) && index == 'i') continue;
      for (int parts : c.parts) {
        Cut all(table, instance, index, axis, parts);
        if (!all.Fits()) continue;
        const string name = NameOf(*instance.entry, instance.over_cp, index, axis);
        if (covered) covered->cuts[name].insert(parts), ++covered->runs;
        if (const string problem = all.Problem(); !problem.empty())
          problems.push_back(absl::StrCat(name, " in ", parts, " parts (", c.name, "): ", problem));
      }
    }
  };
  // A case with cp is one coordinate of it: only tp cuts it further.
  for (const Instance& instance : InstancesOf(table, c, false)) {
    const bool positions = InfoOf(instance.entry->kind).FindAttribute("cp") && !instance.entry->operands_cp.empty();
    if (!c.cut_over_cp_only) cut(instance, Axis::kTp);
    if (!c.cut_over_cp_only && (kind.empty() || kind == instance.entry->name))
      AddTermProblems(instance, problems, covered);
    if (c.cp == 1 && !positions) cut(instance, Axis::kCp);
  }
  if (c.cp > 1) return problems;
  for (const Instance& instance : InstancesOf(table, c, true)) {
    if (!instance.entry->operands_cp.empty()) cut(instance, Axis::kCp);
  }
  return problems;
}

class Cuts : public testing::Test {
 protected:
  const Table table_ = OpsTable();
};

TEST_F(Cuts, PartsMakeUpTheWhole) {
  Covered covered;
  for (const OpCase& c : Cases()) {
    for (const string& problem : Problems(table_, c, "", &covered)) ADD_FAILURE() << problem;
  }
  size_t kinds = 0, indices = 0, cuts = 0, terms = 0;
  for (const Entry& entry : table_.entries) {
    if (entry.operands.empty()) {
      EXPECT_TRUE(kSlices.contains(entry.name)) << entry.name << " has no line operands";
      continue;
    }
    bool any = false;
    for (const bool over_cp : {false, true}) {
      if (over_cp && entry.operands_cp.empty()) continue;
      const std::vector<OperandSignature> inputs = entry.signature(over_cp).inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].linear || kNotLinear.contains(entry.name)) continue;
        EXPECT_TRUE(covered.terms.contains(absl::StrCat(entry.name, over_cp ? " with cp " : " ", i)))
            << "no case in op_cases.cc runs " << entry.name << " on a term of input " << i;
        ++terms;
      }
      for (char index : IndicesOf(entry.signature(over_cp))) {
        bool is_cut = false;
        for (Axis axis : {Axis::kTp, Axis::kCp}) {
          if (!AxisCuts(entry, over_cp, index, axis)) continue;
          const string name = NameOf(entry, over_cp, index, axis);
          for (int parts : {2, 3})
            EXPECT_TRUE(covered.cuts[name].contains(parts))
                << "no case in op_cases.cc cuts " << name << " in " << parts;
          is_cut = true, ++cuts;
        }
        EXPECT_TRUE(is_cut) << "no axis cuts the index " << index << " of " << entry.name;
        any = true, ++indices;
      }
    }
    kinds += any ? 1 : 0;
  }
  std::cout << "cut test: " << kinds << " of " << table_.entries.size() << " compute kinds have " << indices
            << " indices that may be cut, " << cuts << " with their axes; " << covered.runs << " cuts; " << terms
            << " inputs that may be terms\n";
}

// The cases in which a kind is run, where its operands are small.
std::vector<const OpCase*> CasesOf(const Table& table, const string& kind) {
  std::vector<const OpCase*> cases;
  for (const OpCase& c : Cases()) {
    const bool forward =
        std::any_of(c.stages.begin(), c.stages.end(), [&](const OpCase::Stage& stage) { return stage.kind == kind; });
    const std::vector<Entry::Transpose>& lines = table[kind].transposes;
    const bool backward = std::any_of(lines.begin(), lines.end(),
                                      [&](const Entry::Transpose& line) { return NamesIn(c, line).has_value(); });
    if ((forward || backward) && !c.cut_over_cp_only) cases.push_back(&c);
  }
  return cases;
}

// Whether some case of the kind shows that the table is wrong.
bool IsNoticed(const Table& mutant, const string& kind) {
  const std::vector<const OpCase*> cases = CasesOf(mutant, kind);
  return std::any_of(cases.begin(), cases.end(), [&](const OpCase* c) { return !Problems(mutant, *c, kind).empty(); });
}

// A handler that looks at a coordinate although its operands are whole would be wrong wherever an axis cuts none of
// them.
TEST_F(Cuts, CoordinatesSayNothingOfWholeOperands) {
  const std::set<string> by_tp_coordinate = {
      "embed_tokens",        "embed_tokens_grad",
      "cross_entropy_parts", "cross_entropy_grad",  // index v: always cut over tp
      "routing_fingerprint",                        // its tokens are cut over tp wherever tp is above 1
  };
  std::set<string> differ;
  for (const OpCase& c : Cases()) {
    if (c.cp > 1 || c.cut_over_cp_only) continue;
    for (const Instance& whole : InstancesOf(table_, c, false)) {
      for (const RankCoordinates& rank : {RankCoordinates{.tp = 2, .tp_rank = 1, .ep = c.ep, .ep_rank = c.ep_rank},
                                          RankCoordinates{.cp = 2, .cp_rank = 1, .ep = c.ep, .ep_rank = c.ep_rank}}) {
        Tensors buffers;
        for (const at::Tensor& gradient : whole.gradients) buffers.push_back(gradient.clone().fill_(0.5));
        Tensors made =
            RunKind(*whole.entry, c.attributes, rank, whole.inputs, whole.parameters, buffers, whole.outputs);
        bool same = true;
        for (size_t i = 0; i < made.size(); ++i) same = same && made[i].equal(whole.outputs[i]);
        for (size_t i = 0; i < buffers.size(); ++i) same = same && (buffers[i] - 0.5).equal(whole.added[i]);
        if (same) continue;
        EXPECT_EQ(rank.cp, 1) << whole.name() << " looks at its cp coordinate";
        differ.insert(whole.entry->name);
      }
    }
  }
  EXPECT_EQ(differ, by_tp_coordinate);
}

// The kinds without index notation.
TEST_F(Cuts, SlicesAreTheParts) {
  const at::Tensor x = at::arange(96, at::kDouble).view({24, 4});
  for (const int parts : {2, 3}) {
    const at::Tensor counts = at::arange(1, parts + 1, at::kLong);
    const int64_t rows = counts.sum().item<int64_t>();
    Tensors over_tp, over_cp, by_counts;
    for (int r = 0; r < parts; ++r) {
      const auto run = [&](const char* kind, const Attributes& attributes, const RankCoordinates& rank,
                           const Tensors& inputs) {
        return RunKind(table_[kind], attributes, rank, inputs, {}, {}, {})[0];
      };
      const RankCoordinates tp = {.tp = parts, .tp_rank = r}, cp = {.cp = parts, .cp_rank = r};
      over_tp.push_back(run("local_slice", {{"dim", int64_t{0}}}, tp, {x}));
      over_cp.push_back(run("local_slice", {{"dim", int64_t{0}}, {"axis", string("cp")}}, cp, {x}));
      by_counts.push_back(run("slice_rows", {{"axis", string("cp")}}, cp, {x.narrow(0, 0, rows), counts}));
      EXPECT_TRUE(run("local_slice", {{"dim", int64_t{0}}, {"axis", string("cp")}, {"zigzag", int64_t{1}}}, cp, {x})
                      .equal(ZigzagPart(x, 0, r, parts)));
    }
    EXPECT_TRUE(at::cat(over_tp).equal(x));
    EXPECT_TRUE(at::cat(over_cp).equal(x));
    EXPECT_TRUE(at::cat(by_counts).equal(x.narrow(0, 0, rows)));
  }
}

// Entries that say of a dim that it may be cut, of an output that it has the index, or of an input that it may be a
// term, and are wrong.
TEST_F(Cuts, NoticesWrongEntries) {
  const struct {
    const char *kind, *operands;
  } mutants[] = {
      {"rms_norm", "* h | h -> * h, w: * 1"},
      {"layer_norm", "* h | h, h -> * h, w: * 1, w: * 1"},
      {"rms_norm_grad", "+ * h, * h, w: * 1 | h | h -> * h"},
      {"mamba_conv", "t b f, i: D ? | f2 1 W, f2 -> t b f2"},
      {"mamba_conv_grad", "+ t b f2, t b f, i: D ? | f2 1 W, f2 | f2 1 W, f2 -> t b f2"},
      {"mamba_scan", "t b f2, t b f, i: D ? | fh, fh, fh -> t b fi, w: C b fh P N"},
      {"gated_norm", "t b fi, t b f | fi -> t b fi, w: t b F"},
      {"causal_attention", "t b f, i: D ? -> t b fa, w: b fh t"},
      {"causal_attention_grad", "+ t b fa, t b f, t b fa, w: b fh t, i: D ? -> t b f"},
      {"route", "t B H | e H, e -> w: (tB) K, i: (tB) K, i: e, w: (tB) e, i: B e, w: (tB) e"},
      {"route", "t b H | E H, E -> w: (tb) K, i: (tb) K, i: E, w: (tb) E, i: B E, w: (tb) E"},
      {"sequence_aux_loss", "w: (tB) e, i: B e -> d: 1"},
      {"merge_images", "t B H, R H, i: B T -> t B H, !i: R"},
      {"experts", "! X f, !w: X, !i: * | L F f, L f F -> ! X f, ! X F"},
      {"experts", "! X H, !w: X, !i: * | L f H, L H f -> ! X H, ! X F"},
      {"experts", "! X H, !w: X, !i: * | l f H, l H f -> ! X H, ! X f"},
      {"packed_attention", "n f, i: I 2 -> n fa, w: fh n"},
      {"drop_class_tokens", "n H, i: I 2 -> p H"},
      {"linear", "+ * i | o i, o ? -> * O"},
      {"linear_input_grad", "+ * o | o i -> * I"},
      {"token_loss", "w: 2 t b, b t -> w: T b, d: 1"},
      {"add_residual_bias", "+ * H, + * H | H -> * H"},
      {"gelu", "+ * f -> * f"},
      {"gelu_grad", "+ * f, + * f -> * f"},
      {"rms_norm", "+ * H | H -> * H, w: * 1"},
      {"merge_images", "+ s B H, R H, i: B T -> s B H, !i: R"},
      {"token_loss", "+ w: 2 t b, b t -> w: t b, d: 1"},
      {"cross_entropy_parts", "t b v, i: b t -> w: t b, #w: 4 t b"},
      {"cross_entropy_parts", "t b v, i: b t -> ^w: t b, w: 4 t b"},
  };
  for (const auto& m : mutants) {
    Table mutant = table_;
    mutant[m.kind].operands = m.operands;
    EXPECT_TRUE(IsNoticed(mutant, m.kind)) << m.kind << ": " << m.operands;
  }
}

bool HasDim(const Entry& entry, const string& name) {
  for (const bool over_cp : {false, true}) {
    const OpSignature signature = entry.signature(over_cp);
    for (const auto* list : {&signature.inputs, &signature.parameters, &signature.gradients, &signature.outputs}) {
      for (const OperandSignature& operand : *list) {
        for (const SignatureDim& dim : operand.dims) {
          if (dim.name == name) return true;
        }
      }
    }
  }
  return false;
}

// Lines about the parts of a dim that leave out what they say.
TEST_F(Cuts, NoticesWrongParts) {
  int mutants = 0;
  const auto expect_noticed = [&](const Table& mutant, const CutLine& line, const string& what) {
    for (const string& kind : std::vector<string>(absl::StrSplit(line.kinds, ' '))) {
      ++mutants;
      EXPECT_TRUE(IsNoticed(mutant, kind)) << kind << ": " << what;
    }
  };
  for (const Entry& entry : table_.entries) {
    for (size_t i = 0; i < entry.parts.size(); ++i) {
      // Where no operand has the dim, the line is of the kind whose attributes this one has.
      if (entry.parts[i].sizes.empty() || !HasDim(entry, entry.parts[i].name)) continue;
      Table mutant = table_;  // the dim is one part
      auto& parts = mutant[entry.name].parts;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      ++mutants;
      EXPECT_TRUE(IsNoticed(mutant, entry.name)) << entry.name << ": one part " << entry.parts[i].name;
    }
  }
  for (size_t i = 0; i < table_.cuts.size(); ++i) {
    const CutLine& line = table_.cuts[i];
    if (!line.along.empty()) {
      Table mutant = table_;
      mutant.cuts[i].along.clear();
      expect_noticed(mutant, line, "counts that stay those of the whole");
    }
    if (line.even) {
      Table mutant = table_;
      mutant.cuts[i].even = false;
      expect_noticed(mutant, line, "uneven parts");
    }
  }
  std::cout << "cut test: " << mutants << " wrong parts\n";
}

}  // namespace
}  // namespace planwright::executor::cut_test
