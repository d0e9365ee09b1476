// Each kind of model, stated once as verify knows it: its constants, the parameters of every piece with names, shapes,
// cuts and initial values, and what a piece computes, as on one rank: computes, slots and the edges between them.
// Written without a look at how the planner expands and lowers a model (model/, schedule/), so that the two judge each
// other. The texts are hybrid_lm.def and radio_vit.def; a layer kind is added there. Lines:
//
//   can WORD                         has_images, carries_loss
//   constant NAME int|real [or 0] [of KIND]       above 0, but for `or 0`; of KIND: where the module has layers of
//                                                 that kind
//   let NAME = FORMULA               over constants, axes, `layers`, `sequence`, earlier names, sqrt(NAME)
//   file PREFIX                      of file names from here on; {encoder}: "MODULE." where several encoders feed one
//                                    model, else nothing
//   piece embed|head|KIND            what follows is of this piece. In a piece:
//   prefix PREFIX                    of published names; {layer}: the layer's number
//   part projection                  what follows is of the projection, which trains by itself
//   weight SLOT NAME [SIZES] [cut DIM [segments [SIZES]]] DRAW
//                                    one parameter in one storage; `cut`: the dim that tp cuts
//   joined SLOT NAME ...             one more parameter of the storage before, along dim 0
//   experts SLOT NAME ...            moe.experts of them, stacked; expert_tp cuts them
//   buffer SLOT NAME [SIZES] DRAW    saved and loaded, never stepped
//   flops FORMULA, mixing FORMULA    forward, of one token; `mixing`: of these, what has no weights
//   inputs VALUES, outputs VALUES    of the forward block, in order
//   OUTPUTS = OP INPUTS [SLOTS] SETTING VALUE ...
//                                    a compute, or an addition to a sum. A setting is an attribute: a constant's
//                                    name or a text
//   when FORMULA: ...                a compute that is there where the formula is not 0
//   each ...                         once for every encoder that feeds the module, in the order of its bridges
//   counts VALUE                     what messages of this piece count their rows by
//   reshard [SIZES]                  segments of features that are resharded over cp
//
// DRAW: ones, zeros, or a draw with its numbers: normal [std]. Values: name? is there where samples pack documents,
// name* once for each encoder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/expression.h"
#include "planner/plan/plan.h"

namespace planwright {

struct StatedConstant {
  std::string name;
  bool real = false, or_zero = false;
  char of = 0;  // layer kind; 0: every module of the kind
};

struct StatedWeight {
  enum class Form { kWeight, kJoined, kExperts, kBuffer };
  Form form = Form::kWeight;
  std::string slot, name, file_prefix;
  std::vector<Expression> shape, segments, numbers;  // numbers: of the draw
  int cut = -1;
  bool projection = false;
  Init::Kind draw = Init::Kind::kZeros;
};

struct StatedCompute {
  OpKind kind{};
  std::vector<std::string> inputs, slots, outputs;
  std::vector<std::pair<std::string, std::string>> settings;  // attribute, constant or text
  std::optional<Expression> when;
  bool each = false;
};

struct StatedPiece {
  std::string prefix;
  std::vector<StatedWeight> weights;
  std::optional<Expression> flops, mixing;
  std::vector<std::string> inputs, outputs;
  std::vector<StatedCompute> computes;
  std::string counts;
  std::vector<std::vector<Expression>> reshards;
};

struct ModelStatement {
  std::string kind;
  bool has_images = false, carries_loss = false;
  std::vector<StatedConstant> constants;
  std::vector<std::pair<std::string, Expression>> lets;
  StatedPiece embed, head;
  std::map<char, StatedPiece> layers;
};

// Null: verify knows no model of this kind.
const ModelStatement* StatementOf(std::string_view kind);

// The numbers that a module's formulas are over.
class ModelNumbers {
 public:
  ModelNumbers(const Plan& plan, const Module& module, const ModelStatement& statement);

  // NaN: a name that the module lacks.
  double operator()(std::string_view name) const;
  double Of(const Expression& formula) const { return formula.Evaluate(*this); }
  // A size; -1 where it is none.
  int64_t SizeOf(const Expression& formula) const;
  std::vector<int64_t> SizesOf(const std::vector<Expression>& formulas) const;

 private:
  std::map<std::string, double, std::less<>> numbers_;
};

}  // namespace planwright
