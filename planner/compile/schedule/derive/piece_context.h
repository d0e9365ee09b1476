// What the deriver knows of a module besides the rules: its statement with numbers, its grid, the encoders that feed
// it, how the slots of a piece are cut, and the values of attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/compile/schedule/derive/block_inputs.h"
#include "planner/compile/schedule/derive/derived_piece.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

// The slot of a piece's weight, as a rank holds it.
struct DerivedSlot {
  std::vector<int64_t> shape;
  std::vector<int64_t> segments;  // of dim 0, before the cut over tp
  int cut = -1;                   // the dim that tp, or of experts expert_tp, cuts; -1: none
  bool experts = false;           // a stack, of which each ep rank has some
  bool trained = false;           // its gradient is wanted

  // The dim that is cut over the axis; -1: none. The axis has several ranks.
  int CutOver(Axis axis) const;
};

// An encoder that feeds the module, in the names of the module's values.
struct FeedingEncoder {
  std::string prefix;          // of what is there for each encoder: ""; with several encoders "radio_encoder."
  std::string rows, gradient;  // "rows", "drows"; with several encoders "radio_encoder.rows"
  std::string symbol;          // how many rows, without the module: "image_rows"
  int64_t token = -1;          // whose positions its rows take
  bool learns = false;         // it takes a gradient
};

class PieceContext {
 public:
  // `statement`: of the module's model. All must outlive it. `tap`: of a layer that takes carries, its number among
  // those.
  PieceContext(const BlockInputs& inputs, const Module& module, const ModelStatement& statement, bool overlaps_dispatch,
               int64_t tap = 0);

  const ModelStatement& statement() const { return statement_; }
  const ModelNumbers& numbers() const { return numbers_; }
  const Module& module() const { return module_; }
  // Of activations; of statistics, router and softmax, which are never narrower than fp32
  // (docs/training/layout_independence.md#precision).
  DType dtype() const { return inputs_.dtype; }
  DType wide() const { return dtype() == DType::kBf16 ? DType::kFp32 : dtype(); }
  // The shared expert runs while tokens travel. False where none does.
  bool overlaps_dispatch() const { return overlaps_dispatch_; }
  const std::vector<FeedingEncoder>& encoders() const { return encoders_; }
  bool packed_documents() const { return inputs_.data.packed_documents; }
  int64_t size(Axis axis) const { return module_.grid.size(axis); }

  DerivedSlot SlotOf(const StatedPiece& piece, std::string_view slot) const;

  // The types of stated values, local to a rank. `encoder`: of which encoder a starred size is.
  ValueType TypeOf(const StatedType& stated, size_t encoder) const { return TypeOf(stated, encoder, numbers_); }
  // Of a carry before which so many taps stand; none: it is not there.
  std::optional<ValueType> TypeOf(const StatedCarry& carry, size_t encoder, int64_t count) const;
  // Whether nothing takes a gradient of the stream: in an encoder whose layers do not learn, taps hand theirs on beside
  // it. Without taps the layers have no backward, and their values declare gradients all the same.
  bool stream_is_idle() const;
  // Whether it is the name of a carry in blocks.
  bool IsCarry(std::string_view value) const;

  // The attributes whose values are formulas. With several allowed values the statement's setting says which.
  Attributes AttributesOf(OpKind kind) const;
  // What a setting of the statement stands for. `encoder`: as above.
  Attribute SettingOf(const AttributeSpec& spec, const StatedSetting& setting, size_t encoder) const;

  // The run-time size of rows that the kind calls `dim`, with the module; a bug if ops.def has none.
  std::string SymbolOf(OpKind kind, std::string_view dim) const;
  // The run-time size of all parts together of which `part` is one, and back.
  Dim WholeOf(const Dim& part, Axis axis) const;
  Dim PartOf(const Dim& whole, Axis axis) const;

 private:
  double NumberOf(const std::string& name) const;
  ValueType TypeOf(const StatedType& stated, size_t encoder, const ModelNumbers& numbers) const;

  const BlockInputs& inputs_;
  const Module& module_;
  const ModelStatement& statement_;
  const ModelNumbers numbers_;
  bool overlaps_dispatch_ = false;
  std::vector<FeedingEncoder> encoders_;
};

}  // namespace planwright
