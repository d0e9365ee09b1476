#include "planner/state/forms/stored_form.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/statement/take_words.h"
#include "planner/state/forms/name_pattern.h"

namespace planwright {
namespace {

constexpr size_t kMostDims = 8;

StatedNames TakeNamesLine(LineReader& line) {
  StatedNames names;
  names.line = line.line();
  if (line.Peek() != "->") names.ours = line.Take();
  line.Need("->");
  if (!line.empty()) names.theirs = line.Take();
  line.NeedEnd();
  return names;
}

StatedTensor TakeTensorLine(LineReader& line) {
  StatedTensor tensor;
  tensor.line = line.line();
  tensor.name = line.Take("the name of a tensor in files");
  line.Need("=");
  do {
    tensor.parameters.push_back(line.Take("the name of a parameter"));
    const std::vector<std::string>& all = tensor.parameters;
    line.Check(std::find(all.begin(), all.end() - 1, all.back()) == all.end() - 1,
               Cat(Quoted(all.back()), " is there already"));
  } while (line.TakeIf("+"));
  if (line.TakeIf("along")) {
    tensor.along = TakeDim(line, kMostDims);
    if (line.TakeIf("each")) tensor.each = line.TakeFormula();
  }
  tensor.swap = line.TakeIf("swap");
  tensor.stack = line.TakeIf("stack");
  if (line.TakeIf("shape")) tensor.shape = TakeFormulaList(line);
  line.NeedEnd();
  return tensor;
}

}  // namespace

std::string StoredForm::NameOf(const std::string& ours, std::string_view encoder) const {
  for (const StatedNames& rule : names) {
    NameNumbers numbers;
    if (const auto rest = AfterPattern(rule.ours, ours, encoder, numbers))
      return absl::StrCat(NameFrom(rule.theirs, encoder, numbers).value_or(rule.theirs), std::string(*rest));
  }
  return ours;
}

StoredForm& FormLines::Open() { return open_ < 0 ? always_ : groups_[static_cast<size_t>(open_)].alternatives.back(); }

bool FormLines::Take(LineReader& line) {
  if (line.TakeIf("form")) {
    TakeForm(line);
  } else if (line.TakeIf("names")) {
    StatedNames names = TakeNamesLine(line);
    if (!line.failed()) Open().names.push_back(std::move(names));
  } else if (line.TakeIf("tensor")) {
    StatedTensor tensor = TakeTensorLine(line);
    if (!line.failed()) Open().tensors.push_back(std::move(tensor));
  } else {
    return false;
  }
  return true;
}

void FormLines::TakeForm(LineReader& line) {
  const std::string name = line.Take("the name of a group of forms");
  auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) { return one.name == name; });
  size_t forms = 1;
  for (const Group& one : groups_) forms *= one.alternatives.size() + (one.name == name ? 1 : 0);
  line.Check(line.failed() || forms <= kMostForms, Cat("the groups have more than ", kMostForms, " choices together"));
  line.Need(':');
  StoredForm form;
  form.text = line.Rest();
  if (!line.failed() && form.text.empty()) line.Expect(false, "what people call the form");
  if (line.failed()) return;
  if (group == groups_.end()) group = groups_.insert(groups_.end(), {name, {}});
  group->alternatives.push_back(std::move(form));
  open_ = static_cast<int>(group - groups_.begin());
}

void FormLines::DropTensors() {
  always_.tensors.clear();
  for (Group& group : groups_) {
    for (StoredForm& form : group.alternatives) form.tensors.clear();
  }
}

std::vector<StoredForm> FormLines::Forms() const {
  std::vector<StoredForm> forms = {StoredForm()};
  for (const Group& group : groups_) {
    std::vector<StoredForm> longer;
    for (const StoredForm& form : forms) {
      for (const StoredForm& alternative : group.alternatives) {
        StoredForm& both = longer.emplace_back(form);
        absl::StrAppend(&both.text, both.text.empty() ? "" : ", ", alternative.text);
        std::copy(alternative.names.begin(), alternative.names.end(), std::back_inserter(both.names));
        std::copy(alternative.tensors.begin(), alternative.tensors.end(), std::back_inserter(both.tensors));
      }
    }
    forms = std::move(longer);
  }
  for (StoredForm& form : forms) {
    std::copy(always_.names.begin(), always_.names.end(), std::back_inserter(form.names));
    std::copy(always_.tensors.begin(), always_.tensors.end(), std::back_inserter(form.tensors));
  }
  return forms;
}

}  // namespace planwright
