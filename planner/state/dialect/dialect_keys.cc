#include "planner/state/dialect/dialect_keys.h"

namespace planwright {
namespace {

using Form = StatedKey::Form;

bool GivesConstant(const StatedKey& key) { return key.form == Form::kConstant || key.form == Form::kChoice; }

}  // namespace

const StatedKey* FindDialectKey(const ModelStatement& statement, std::string_view name) {
  for (const StatedKey& key : statement.keys) {
    if (GivesConstant(key) && key.name == name) return &key;
  }
  return nullptr;
}

std::vector<std::string> KeysOfDialects(const ModelStatement& statement) {
  std::vector<std::string> names;
  for (const StatedKey& key : statement.keys) {
    if (GivesConstant(key)) names.push_back(key.name);
  }
  return names;
}

std::vector<std::string> SectionsOf(const ModelStatement& statement) {
  std::vector<std::string> names;
  for (const StatedKey& key : statement.keys) {
    if (key.form == Form::kSection) names.push_back(key.name);
  }
  return names;
}

const StatedConstant* ConstantOfKey(const ModelStatement& statement, const StatedKey& key) {
  if (!GivesConstant(key)) return nullptr;
  const std::string& name = key.form == Form::kChoice ? key.sets : key.name;
  for (const StatedConstant& constant : statement.constants) {
    if (constant.name == name) return &constant;
  }
  return nullptr;
}

}  // namespace planwright
