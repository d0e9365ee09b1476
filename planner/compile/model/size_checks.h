// Checks of the sizes of one module, against each other (PW0505) and against its parallel sizes (PW0209), with their
// diagnostics.
#pragma once

#include <string>

#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

class SizeChecks {
 public:
  SizeChecks(const ModuleRecipe& module, Diagnostics& diagnostics) : module_(module), diagnostics_(diagnostics) {}

  // PW0209 unless `size` is a multiple of the parallel size `parts`, or, if it `may_repeat`, `parts` is one of it.
  // `what` and `axis`: their names in the message.
  void Cut(const std::string& what, const Located<int64_t>& size, const std::string& axis,
           const Located<int64_t>& parts, bool may_repeat = false);

  // PW0209 if the parallel size is above what the model can be cut to. `because`: numbers of the model that ask for it.
  void Axis(const std::string& axis, const Located<int64_t>& size, int64_t most, const LocatedNumbers& because);

  // PW0505 unless `size` is a multiple of `parts`, another size of the model, whose name is `of`,
  // or a number ("").
  void Multiple(const std::string& what, const Located<int64_t>& size, const std::string& of,
                const Located<int64_t>& parts);

  // PW0505 if `size` is above `most`, another size of the model, whose name is `of`.
  void AtMost(const std::string& what, const Located<int64_t>& size, const std::string& of,
              const Located<int64_t>& most);

  // PW0505, at the location of `at`, if `count`, a product of sizes, is above `most`.
  void Within(const std::string& what, double count, const Located<int64_t>& at, double most);

  // PW0505 with this message, which the name of the model precedes.
  Diagnostic& Shape(const Located<int64_t>& at, std::string message, std::string help);

  // PW0504: the pattern has layers of this kind, but the model has no section for them.
  void MissingSection(const Location& pattern, const StatedLayer& layer, const std::string& section);

  // Whether no check has failed.
  bool fine() const { return !failed_; }

 private:
  void Note(Diagnostic& problem, const std::string& what, const Located<int64_t>& size);

  const ModuleRecipe& module_;
  Diagnostics& diagnostics_;
  bool failed_ = false;
};

}  // namespace planwright
