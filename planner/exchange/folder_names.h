// What the parameters of a module are called in a Hugging Face folder.
#pragma once

#include <optional>
#include <string>

#include "planner/exchange/said_model.h"
#include "planner/plan/plan.h"
#include "planner/state/forms/stored_form.h"

namespace planwright {

class FolderNames {
 public:
  // `dialect`: of the folder's config.json. Keeps a reference to `module`.
  FolderNames(const DialectSet& dialects, const Dialect& dialect, const Module& module);

  // None: the folder does not have it, as one of an encoder alone has no projector. Of experts the name of all.
  std::optional<std::string> NameOf(const Parameter& parameter) const;

 private:
  const Module& module_;
  StoredForm form_;
  bool projection_ = true;  // the folder has it
};

// Whether a parameter is one of `part projection` in the module's statement.
bool IsOfProjection(const Module& module, const Parameter& parameter);

}  // namespace planwright
