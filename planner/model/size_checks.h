// Checks of one module's sizes against each other and against its grid, and what is said of those that do not fit.
#pragma once

#include <initializer_list>
#include <string>

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Of sizes that are each fine and whose product may leave 64 bits.
double Product(std::initializer_list<int64_t> sizes);

class SizeChecks {
 public:
  SizeChecks(const ModuleRecipe& module, Diagnostics& diagnostics) : module_(module), diagnostics_(diagnostics) {}

  // `size` must be a multiple of the parallel size `parts`.
  void Cut(const std::string& what, const Located<int64_t>& size, const std::string& axis,
           const Located<int64_t>& parts);

  // `size` must be a multiple of another size of the model.
  void Multiple(const std::string& what, const Located<int64_t>& size, const std::string& of,
                const Located<int64_t>& parts);

  void AtMost(const std::string& what, const Located<int64_t>& size, const std::string& of,
              const Located<int64_t>& most);

  // `count`: a product.
  void Within(const std::string& what, double count, const Located<int64_t>& at, double most);

  Diagnostic& Shape(const Located<int64_t>& at, std::string message, std::string help);

  // The pattern has a layer whose sizes the model does not give.
  void MissingSection(const HybridLmModel& model, char letter);

  // Nothing was wrong.
  bool fine() const { return !failed_; }

 private:
  void Note(Diagnostic& problem, const std::string& what, const Located<int64_t>& size);

  const ModuleRecipe& module_;
  Diagnostics& diagnostics_;
  bool failed_ = false;
};

}  // namespace planwright
