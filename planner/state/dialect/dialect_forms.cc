#include "planner/state/dialect/dialect_forms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

template <typename Line>
void Append(const std::vector<Line>& more, std::vector<Line>& lines) {
  lines.insert(lines.end(), more.begin(), more.end());
}

// Each form of one list together with each of the other. Lines of `front` come first, so that their names count.
std::vector<StoredForm> Together(const std::vector<StoredForm>& front, const std::vector<StoredForm>& behind,
                                 bool names_of_both) {
  std::vector<StoredForm> forms;
  for (const StoredForm& first : front) {
    for (const StoredForm& second : behind) {
      StoredForm& both = forms.emplace_back(first);
      absl::StrAppend(&both.text, both.text.empty() || second.text.empty() ? "" : ", ", second.text);
      if (names_of_both) Append(second.names, both.names);
      Append(second.tensors, both.tensors);
    }
  }
  return forms;
}

// By `like` a dialect has the lines of another one too.
std::vector<StoredForm> OwnForms(const Dialect& dialect, const DialectSet& dialects) {
  const Dialect& root = dialects.RootOf(dialect);
  if (&root == &dialect) return dialect.forms.Forms();
  return Together(dialect.forms.Forms(), root.forms.Forms(), true);
}

bool Says(const std::vector<StoredForm>& forms) {
  return std::any_of(forms.begin(), forms.end(),
                     [](const StoredForm& form) { return !form.names.empty() || !form.tensors.empty(); });
}

}  // namespace

bool DialectForms::IsOf(std::string_view model_type) const {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return name.ends_with('*') ? model_type.starts_with(name.substr(0, name.size() - 1)) : name == model_type;
  });
}

KindForms FormsOf(const DialectSet& dialects) {
  KindForms forms;
  const auto add = [&](const std::string& kind, const Dialect& dialect, std::vector<StoredForm> some) {
    if (Says(some)) forms[kind].push_back({dialect.names, std::move(some)});
  };
  for (const Dialect& dialect : dialects.all()) {
    add(dialect.kind, dialect, OwnForms(dialect, dialects));
    const DialectPart* part = dialect.language();
    const Dialect* language = part == nullptr ? nullptr : dialects.Find(part->dialects.front());
    if (language != nullptr)
      add(language->kind, dialect, Together(dialect.language_forms.Forms(), OwnForms(*language, dialects), false));
  }
  return forms;
}

const KindForms& BuiltInForms() {
  static const KindForms kForms = FormsOf(BuiltInDialects());
  return kForms;
}

}  // namespace planwright
