#include "planner/exchange/read_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/utf8.h"
#include "planner/exchange/config_keys.h"
#include "planner/exchange/read_dialect.h"
#include "planner/exchange/said_text.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// A dialect with `where` counts before the one that it is like.
const Dialect* DialectOf(const Json& config, const std::string& type, const DialectSet& dialects) {
  const Dialect* of_type = type.empty() ? nullptr : dialects.OfType(type);
  for (const Dialect& one : dialects.all()) {
    const bool fits = type.empty() || &dialects.RootOf(one) == of_type;
    if (fits && !one.where.empty() && IsWhere(one, config)) return &one;
  }
  return of_type;
}

// "a, b, and what else is known".
std::string AllTypes(const DialectSet& dialects) {
  std::vector<std::string> names, called;
  for (const Dialect& one : dialects.all()) {
    if (!one.called.empty()) called.push_back(one.called);
    for (const std::string& name : one.names) {
      if (one.where.empty() && !name.ends_with('*')) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  if (called.empty()) return Listed(names);
  return absl::StrCat(absl::StrJoin(names, ", "), ", and ", Listed(called));
}

}  // namespace

SaidModel ReadModel(const Json& config, const std::set<std::string>& ignored, Findings& findings,
                    const DialectSet& dialects) {
  SaidModel model;
  model.dialects = &dialects;
  model.type = TypeOfObject(config, "", findings);
  const std::string& type = model.type;
  model.dialect = DialectOf(config, type, dialects);
  if (model.dialect == nullptr) {
    const std::string* why = dialects.RefusalOf(type);
    findings.Problem("model_type", ValueText(Json(type)),
                     absl::StrCat("cannot be expressed", why ? ": " : ", only ", why ? *why : AllTypes(dialects)));
    return model;
  }
  ConfigKeys keys(config, "", findings);
  ReadByDialect(*model.dialect, keys, ignored, model);
  for (const std::string& key : ignored) {
    if (!findings.ignored.contains(key))
      findings.notes.push_back(
          absl::StrCat("--ignore ", Printable(key), " has no effect: it is no unknown key of config.json"));
  }
  return model;
}

}  // namespace planwright
