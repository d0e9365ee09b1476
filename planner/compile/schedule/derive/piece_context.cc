#include "planner/compile/schedule/derive/piece_context.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/bug.h"
#include "planner/compile/schedule/derive/bridge_value.h"

namespace planwright {
namespace {

using std::string;

int64_t WholeNumber(double value, const string& what) {
  Require(std::isfinite(value) && value == std::floor(value), "no whole number: " + what);
  return static_cast<int64_t>(value);
}

}  // namespace

int DerivedSlot::CutOver(Axis axis) const {
  if (experts) return axis == Axis::kExpertTp ? cut : axis == Axis::kEp ? 0 : -1;
  return axis == Axis::kTp ? cut : -1;
}

PieceContext::PieceContext(const BlockInputs& inputs, const Module& module, const ModelStatement& statement,
                           bool overlaps_dispatch, int64_t tap)
    : inputs_(inputs), module_(module), statement_(statement),
      numbers_(ModelNumbers(inputs.budget, module, statement).AtTap(tap)),
      overlaps_dispatch_(overlaps_dispatch && module.grid.ep * module.grid.expert_tp > 1) {
  for (const Bridge& bridge : inputs.bridges) {
    if (bridge.to != module.name) continue;
    const auto named = [&](const char* what) { return BridgeValue(inputs.bridges, bridge, what); };
    encoders_.push_back({named(""), named("rows"), named("drows"), named("image_rows"), bridge.token,
                         inputs.FindModule(bridge.from)->trained()});
  }
}

DerivedSlot PieceContext::SlotOf(const StatedPiece& piece, std::string_view name) const {
  const std::vector<const StatedWeight*> weights = numbers_.WeightsOf(piece, name);
  Require(!weights.empty(), absl::StrCat("a statement uses the slot ", string(name), ", which it lacks"));
  const StatedWeight* first = weights.front();
  DerivedSlot slot = {.shape = numbers_.SizesOf(first->shape), .segments = numbers_.SizesOf(first->segments)};
  slot.cut = first->cut;
  slot.experts = first->form == StatedWeight::Form::kExperts;
  slot.trained = first->form != StatedWeight::Form::kBuffer &&
                 (first->adapter || (first->projection ? module_.trains_projection : module_.trains_backbone));
  if (slot.segments.empty()) slot.segments = {slot.shape.front()};
  for (size_t joined = 1; joined < weights.size(); ++joined) {
    slot.segments.push_back(numbers_.SizeOf(weights[joined]->shape.front()));
    slot.shape.front() += slot.segments.back();
  }
  if (slot.cut >= 0) {
    int64_t& rows = slot.shape[static_cast<size_t>(slot.cut)];
    const int64_t parts = size(slot.experts ? Axis::kExpertTp : Axis::kTp);
    rows = (rows + (first->padded ? parts - 1 : 0)) / parts;
  }
  if (!slot.experts) return slot;
  slot.shape.insert(slot.shape.begin(), module_.experts() / size(Axis::kEp));
  slot.cut += slot.cut >= 0 ? 1 : 0;
  return slot;
}

std::optional<ValueType> PieceContext::TypeOf(const StatedCarry& carry, size_t encoder, int64_t count) const {
  StatedType stated = carry.type;
  stated.learns = carry.name.ends_with('*') ? encoders_.at(encoder).learns : module_.trained();
  ValueType type = TypeOf(stated, encoder, numbers_.Counting(count));
  if (type.dims.back() == Dim(int64_t{0})) return std::nullopt;
  for (Axis axis : {Axis::kTp, Axis::kCp}) {
    if (carry.partial && type.gradient && size(axis) > 1) (*type.gradient)[axis] = {AxisLayout::State::kPartial};
  }
  return type;
}

bool PieceContext::stream_is_idle() const {
  return module_.has_images && numbers_("taps") > 0 && !module_.trains_layers();
}

bool PieceContext::IsCarry(std::string_view value) const {
  for (const StatedCarry& carry : statement_.carries) {
    if (carry.name == value) return true;
    if (!carry.name.ends_with('*')) continue;
    const string plain = carry.name.substr(0, carry.name.size() - 1);
    for (const FeedingEncoder& encoder : encoders_) {
      if (encoder.prefix + plain == value) return true;
    }
  }
  return false;
}

ValueType PieceContext::TypeOf(const StatedType& stated, size_t encoder, const ModelNumbers& numbers) const {
  ValueType type = {stated.dtype.value_or(dtype()), {}, {}, std::nullopt, stated.host};
  for (const StatedType::Size& size : stated.sizes) {
    if (const string* symbol = std::get_if<string>(&size)) {
      const bool each = symbol->ends_with('*');
      type.dims.emplace_back(absl::StrCat(module_.name, ".", each ? encoders_.at(encoder).symbol : *symbol));
    } else {
      type.dims.emplace_back(numbers.SizeOf(std::get<Expression>(size)));
    }
  }
  for (Axis axis : stated.over) {
    if (size(axis) == 1) continue;
    type.layout[axis] = {AxisLayout::State::kSharded, stated.cut, axis == Axis::kCp && statement_.zigzag};
    Dim& dim = type.dims[static_cast<size_t>(stated.cut)];
    if (int64_t* number = std::get_if<int64_t>(&dim)) *number /= size(axis);
    // Rows that are stated as those of all ranks have another name where they are cut.
    for (const auto& [part, whole] : statement_.gathered) {
      if (dim == Dim(absl::StrCat(module_.name, ".", whole))) dim = absl::StrCat(module_.name, ".", part);
    }
  }
  if (stated.learns) type.gradient = type.layout;
  return type;
}

double PieceContext::NumberOf(const string& name) const {
  if (name == "image_token") return static_cast<double>(inputs_.data.image_token);
  if (name == "in_step") return 1;  // what an evaluation has in its place: blocks/block_passes.h
  return numbers_(name);
}

Attributes PieceContext::AttributesOf(OpKind kind) const {
  Attributes attributes;
  const auto number_of = [&](const string& name) { return NumberOf(name); };
  for (const AttributeSpec& spec : InfoOf(kind).attributes) {
    if (spec.values.size() != 1) continue;
    if (spec.when && spec.when->Evaluate(number_of) == 0) continue;
    const double value = spec.values.front().Evaluate(number_of);
    if (spec.type == AttributeType::kInteger) {
      attributes[spec.name] = WholeNumber(value, absl::StrCat(string(OpName(kind)), " ", spec.name));
    } else {
      attributes[spec.name] = value;
    }
  }
  return attributes;
}

Attribute PieceContext::SettingOf(const AttributeSpec& spec, const StatedSetting& setting, size_t encoder) const {
  if (setting.text == "token*") return encoders_.at(encoder).token;
  if (spec.type == AttributeType::kReal) return numbers_.Of(setting);
  if (spec.type == AttributeType::kInteger)
    return WholeNumber(numbers_.Of(setting), absl::StrCat(setting.attribute, " ", setting.text));
  return absl::StrReplaceAll(setting.text, {{"{module}", module_.name}});
}

string PieceContext::SymbolOf(OpKind kind, std::string_view dim) const {
  const string* rows = InfoOf(kind).FindRows(dim);
  Require(rows != nullptr,
          absl::StrCat("nothing says how large the dim ", string(dim), " of ", string(OpName(kind)), " is"));
  return absl::StrCat(module_.name, ".", *rows);
}

Dim PieceContext::WholeOf(const Dim& part, Axis axis) const {
  if (const int64_t* number = std::get_if<int64_t>(&part)) return *number * size(axis);
  for (const auto& [of_part, of_whole] : statement_.gathered) {
    if (std::get<string>(part) == absl::StrCat(module_.name, ".", of_part))
      return absl::StrCat(module_.name, ".", of_whole);
  }
  Bug(std::get<string>(part) + " has no name for the rows of all ranks");
}

Dim PieceContext::PartOf(const Dim& whole, Axis axis) const {
  if (const int64_t* number = std::get_if<int64_t>(&whole)) return *number / size(axis);
  for (const auto& [of_part, of_whole] : statement_.gathered) {
    if (std::get<string>(whole) == absl::StrCat(module_.name, ".", of_whole))
      return absl::StrCat(module_.name, ".", of_part);
  }
  Bug(std::get<string>(whole) + " has no name for the rows of one rank");
}

}  // namespace planwright
