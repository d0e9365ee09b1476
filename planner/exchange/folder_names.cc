#include "planner/exchange/folder_names.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

FolderNames::FolderNames(const DialectSet& dialects, const Dialect& dialect, const Module& module) : module_(module) {
  const Dialect& root = dialects.RootOf(dialect);
  const bool of_whole = root.composite() && !module.has_images;
  form_ = (of_whole ? root.language_forms : root.forms).Forms().front();
  projection_ = root.projection;
}

std::optional<std::string> FolderNames::NameOf(const Parameter& parameter) const {
  if (!projection_ && IsOfProjection(module_, parameter)) return std::nullopt;
  // With several encoders, names begin with that of the module; one leaves by itself.
  const std::string own = module_.name + ".";
  const std::string& name = parameter.file_name;
  return form_.NameOf(name.starts_with(own) ? name.substr(own.size()) : name, "");
}

bool IsOfProjection(const Module& module, const Parameter& parameter) {
  const StatedPiece& head = StatementOf(module.kind)->head;
  for (const StatedWeight& weight : head.weights) {
    const std::string name =
        absl::StrCat(absl::StrReplaceAll(weight.file_prefix, {{"{encoder}", ""}}), head.prefix, weight.name);
    if (weight.projection && (parameter.file_name == name || absl::EndsWith(parameter.file_name, "." + name)))
      return true;
  }
  return false;
}

}  // namespace planwright
