#include "planner/state/dialect/dialect_forms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

bool HoldsAnyOf(const StoredForm& form, const StatedTensor& tensor) {
  return std::any_of(form.tensors.begin(), form.tensors.end(), [&](const StatedTensor& one) {
    return std::find_first_of(one.parameters.begin(), one.parameters.end(), tensor.parameters.begin(),
                              tensor.parameters.end()) != one.parameters.end();
  });
}

// Each form of one list together with each of the other. Lines of `front` come first, so that they count.
std::vector<StoredForm> Together(const std::vector<StoredForm>& front, const std::vector<StoredForm>& behind,
                                 bool names_of_both) {
  std::vector<StoredForm> forms;
  for (const StoredForm& first : front) {
    for (const StoredForm& second : behind) {
      StoredForm& both = forms.emplace_back(first);
      absl::StrAppend(&both.text, both.text.empty() || second.text.empty() ? "" : ", ", second.text);
      if (names_of_both) both.names.insert(both.names.end(), second.names.begin(), second.names.end());
      for (const StatedTensor& tensor : second.tensors) {
        if (!HoldsAnyOf(first, tensor)) both.tensors.push_back(tensor);
      }
    }
  }
  return forms;
}

// The dialect's own lines, and by `like` those of another one.
std::vector<StoredForm> OwnForms(const Dialect& dialect, FormLines Dialect::*lines, const DialectSet& dialects) {
  const Dialect& root = dialects.RootOf(dialect);
  if (&root == &dialect) return (dialect.*lines).Forms();
  FormLines of_root = root.*lines;
  if (!dialect.tensors) of_root.DropTensors();
  return Together((dialect.*lines).Forms(), of_root.Forms(), true);
}

bool SameTensors(const StoredForm& one, const StoredForm& other) {
  return std::equal(one.tensors.begin(), one.tensors.end(), other.tensors.begin(), other.tensors.end(),
                    [](const StatedTensor& a, const StatedTensor& b) { return a.line == b.line; });
}

// Of the forms of a part those that the whole has, whose names are its own: one of those that differ in names alone.
std::vector<StoredForm> OfTensors(std::vector<StoredForm> forms) {
  std::vector<StoredForm> found;
  for (StoredForm& form : forms) {
    const auto same = [&](const StoredForm& other) { return SameTensors(form, other); };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(std::move(form));
  }
  if (found.size() == 1) found.front().text.clear();
  return found;
}

// The dialect of a part of a composite; null: it has none, or any.
const Dialect* DialectOfPart(const Dialect& dialect, bool encoder, const DialectSet& dialects) {
  for (const DialectLine& line : dialect.lines) {
    const auto* part = std::get_if<DialectPart>(&line);
    if (part != nullptr && part->encoder == encoder) return dialects.Find(part->dialects.front());
  }
  return nullptr;
}

bool Says(const std::vector<StoredForm>& forms) {
  return std::any_of(forms.begin(), forms.end(),
                     [](const StoredForm& form) { return !form.names.empty() || !form.tensors.empty(); });
}

}  // namespace

bool DialectForms::IsOf(std::string_view model_type) const { return HasType(names, model_type); }

std::vector<StoredForm> FormsIn(const DialectSet& dialects, const Dialect& dialect, std::string_view kind) {
  const bool of_dialect = kind == dialect.kind;
  const std::vector<StoredForm> own =
      OwnForms(dialect, of_dialect ? &Dialect::forms : &Dialect::language_forms, dialects);
  const Dialect* part = DialectOfPart(dialect, of_dialect, dialects);
  if (part == nullptr) return own;
  return Together(own, OfTensors(OwnForms(*part, &Dialect::forms, dialects)), false);
}

KindForms FormsOf(const DialectSet& dialects) {
  KindForms forms;
  const auto add = [&](const Dialect& dialect, const std::string& kind) {
    std::vector<StoredForm> some = FormsIn(dialects, dialect, kind);
    if (Says(some)) forms[kind].push_back({dialect.names, std::move(some)});
  };
  for (const Dialect& dialect : dialects.all()) {
    add(dialect, dialect.kind);
    if (const Dialect* language = DialectOfPart(dialect, false, dialects)) add(dialect, language->kind);
  }
  return forms;
}

const KindForms& BuiltInForms() {
  static const KindForms kForms = FormsOf(BuiltInDialects());
  return kForms;
}

}  // namespace planwright
