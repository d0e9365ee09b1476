#include <map>

#include "planner/diff/diff.h"
#include "planner/show/table.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

std::string ValueText(const Json& value) {
  constexpr size_t kMost = 60;
  if (value.is_null()) return "-";
  if (value.is_object() && value.size() == 2 && value.contains("own")) {
    return WithCommas(value["items"]) + " (" + WithCommas(value["own"]) + " its own)";
  }
  if (value.is_object() && value.size() == 2 && value.contains("ranks_each")) {
    return WithCommas(value["groups"]) + " of " + WithCommas(value["ranks_each"]);
  }
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (Width(text) <= kMost) return text;
  size_t cut = kMost - 3;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // not within a character
  return text.substr(0, cut) + "...";
}

}  // namespace

Json DiffJson(const PlanDiff& diff) {
  Json changes = Json::array();
  for (const Change& change : diff.changes) {
    changes.push_back({{"path", change.path}, {"from", change.from}, {"to", change.to}, {"effect", change.effect}, {"area", change.area},
                       {"may_change_loss", change.may_change_loss}});
  }
  return {{"same", diff.same()}, {"may_change_loss", diff.may_change_loss()}, {"changes", std::move(changes)}};
}

std::string DiffText(const PlanDiff& diff, const std::string& from, const std::string& to) {
  if (diff.same()) return from + " and " + to + " are the same plan\n";
  std::string text = from + " and " + to + ": " + WithCommas(static_cast<int64_t>(diff.changes.size())) + " differences; the loss curve " +
                     (diff.may_change_loss() ? "may change (by those marked !)" : "does not change") + "\n";
  std::vector<std::string> areas;
  std::map<std::string, Table> tables;
  for (const Change& change : diff.changes) {
    const auto [it, fresh] = tables.try_emplace(change.area, Table({"", "", "", "", "", ""}));
    if (fresh) areas.push_back(change.area);
    it->second.Add({change.may_change_loss ? "!" : " ", change.path, ValueText(change.from), "->", ValueText(change.to), change.effect});
  }
  for (const std::string& area : areas) {
    std::string table = tables.at(area).Text(" ");
    table.erase(0, table.find('\n') + 1);  // no header
    text += "\n" + area + "\n" + table;
  }
  return text;
}

}  // namespace planwright
