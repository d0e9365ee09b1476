#include "planner/state/weights/known_extras.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"

namespace planwright {

const KnownExtra* FindKnownExtra(std::string_view name) { return BuiltInDialects().FindExtra(name); }

std::vector<double> NumbersOf(const KnownExtra& extra) {
  if (extra.is.empty()) return {};
  const auto numbers = nlohmann::json::parse(extra.is);
  return numbers.is_array() ? numbers.get<std::vector<double>>() : std::vector<double>{numbers.get<double>()};
}

std::span<const OtherName> OtherNames() {
  static const std::vector<OtherName> names = [] {
    std::vector<OtherName> all;
    for (const Dialect& dialect : BuiltInDialects().all()) {
      const StoredForm form = dialect.forms.Forms().front();
      for (const StatedNames& stated : form.names) {
        const std::string ours = absl::StrReplaceAll(stated.ours, {{"{encoder}", ""}});
        if (!ours.empty() && !stated.theirs.empty() && ours != stated.theirs) all.push_back({ours, stated.theirs});
      }
    }
    return all;
  }();
  return names;
}

std::string HintIfMissing(const std::string& file_name) {
  for (const OtherName& other : OtherNames()) {
    const size_t at = file_name.find(other.ours);
    if (at == std::string::npos) continue;
    const DialectHint* hint = BuiltInDialects().FindMissing(other.published + file_name.substr(at + other.ours.size()));
    if (hint != nullptr) return ": " + hint->text;
  }
  return "";
}

}  // namespace planwright
