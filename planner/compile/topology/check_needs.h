// What the statement of a model needs of its sizes (lines `needs` of model_statement.h), checked on the numbers of a
// recipe, with the places that give them.
#pragma once

#include "planner/compile/model/expand_model.h"
#include "planner/compile/model/size_checks.h"

namespace planwright {

class NeedChecks {
 public:
  // `numbers`: of the module's model (NumbersOf). All must outlive it.
  NeedChecks(const ModuleRecipe& module, const LocatedNumbers& numbers, SizeChecks& check)
      : module_(module), check_(check), numbers_(numbers) {}

  // What holds on every layout (PW0505), and what the axes of the module must divide (PW0209).
  void CheckShape(const StatedPiece& piece);
  void CheckLayout(const StatedPiece& piece);

 private:
  double Of(const Expression& formula) const;
  bool AllKnownIn(const Expression& formula) const;
  Located<int64_t> LocatedAt(const Expression& formula, const std::string& constant) const;
  void CheckMultiple(const StatedNeed& need);
  void CheckAtMost(const StatedNeed& need);
  void CheckCut(const StatedNeed& need);

  const ModuleRecipe& module_;
  SizeChecks& check_;
  const LocatedNumbers& numbers_;
};

}  // namespace planwright
