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

// Of all dialects that have lines `names`, `tensor` or `form`, by themselves or by `like`, or of which a part has some.
KindForms FormsOf(const DialectSet& dialects);

// The forms that a model of this kind has in folders of the dialect, at least one. A part of a composite has the lines
// `tensor` of its own dialect, too, and those of the composite come first. Where both hold one parameter, the first
// line counts.
std::vector<StoredForm> FormsIn(const DialectSet& dialects, const Dialect& dialect, std::string_view kind);

// Of the kinds that come with this program.
const KindForms& BuiltInForms();

}  // namespace planwright
