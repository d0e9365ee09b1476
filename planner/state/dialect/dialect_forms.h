// The forms in which the folders of dialects hold the models of a kind, in the order of the dialects.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/state/dialect/dialect.h"
#include "planner/state/forms/stored_form.h"

namespace planwright {

struct DialectForms {
  std::vector<std::string> names;  // of the dialect: values of `model_type` in config.json; NAME* is a beginning
  std::vector<StoredForm> forms;   // at least one

  // Whether it is one of folders whose config.json has this `model_type`.
  bool IsOf(std::string_view model_type) const;
};
using KindForms = std::map<std::string, std::vector<DialectForms>>;  // by kind

// Of all dialects that have lines `names`, `tensor` or `form`, by themselves or by `like`. A language model in a
// composite has the tensors of its own dialect, and what lines `language ...` of the composite say.
KindForms FormsOf(const DialectSet& dialects);

// Of the kinds that come with this program.
const KindForms& BuiltInForms();

}  // namespace planwright
