#include "planner/recipe/recipe_schema.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/diagnostics/text.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";  // key_checks.cc, CheckName

// Whole limits as integers: a schema is read by people too.
Json Number(double value) { return value == std::floor(value) ? Json(static_cast<int64_t>(value)) : Json(value); }

void AddRange(const KeyRange& range, Json& schema) {
  using Bound = KeyRange::Bound;
  if (range.low_bound == Bound::kInclusive) schema["minimum"] = Number(range.low);
  if (range.low_bound == Bound::kExclusive) schema["exclusiveMinimum"] = Number(range.low);
  if (range.high_bound == Bound::kInclusive) schema["maximum"] = Number(range.high);
  if (range.high_bound == Bound::kExclusive) schema["exclusiveMaximum"] = Number(range.high);
}

Json Ranged(const char* type, const KeySpec& spec) {
  Json schema = {{"type", type}};
  AddRange(spec.range, schema);
  return schema;
}

Json Pair(const char* type, const KeySpec& spec) {
  return {{"type", "array"}, {"items", Ranged(type, spec)}, {"minItems", 2}, {"maxItems", 2}};
}

Json Ref(const std::string& definition) { return {{"$ref", "#/definitions/" + definition}}; }

Json KindIs(const std::string& kind) { return {{"properties", {{"kind", {{"const", kind}}}}}, {"required", {"kind"}}}; }

// The kinds that the map at `path` may be of; empty when all such maps have the same keys.
std::vector<std::string> KindsOf(const std::string& path) {
  const KeySpec* kind = FindKey(path, "kind", "");
  if (kind == nullptr) return {};
  for (const KeySpec* key : KeysOf(path)) {
    if (!key->kind.empty()) return ChoicesOf(*kind);
  }
  return {};
}

class SchemaBuilder {
 public:
  // Which keys the map at `path` may have, and their values.
  Json Shape(const std::string& path) {
    const std::vector<std::string> kinds = KindsOf(path);
    if (kinds.empty()) return ShapeOfKind(path, "");
    const KeySpec& kind_key = *FindKey(path, "kind", "");
    Json any = Json::array(), all = Json::array();
    for (const std::string& kind : kinds) {
      definitions_.emplace(kind, ShapeOfKind(path, kind));
      any.push_back(Ref(kind));
      all.push_back({{"if", KindIs(kind)}, {"then", Ref(kind)}});
    }
    // Without its kind a map may be laid over one that has it.
    all.push_back({{"if", {{"not", {{"required", {"kind"}}}}}}, {"then", {{"anyOf", any}}}});
    return {{"type", "object"}, {"properties", {{"kind", Value(kind_key)}}}, {"allOf", all}};
  }

  // What must be there in the map at `path` of a file that stands alone: nothing but `required`, here and further down.
  Json Whole(const std::string& path) {
    const std::vector<std::string> kinds = KindsOf(path);
    if (kinds.empty()) return WholeOfKind(path, "");
    Json all = Json::array();
    for (const std::string& kind : kinds) all.push_back({{"if", KindIs(kind)}, {"then", WholeOfKind(path, kind)}});
    Json whole = {{"allOf", all}};
    const KeySpec& kind_key = *FindKey(path, "kind", "");
    if (kind_key.need == Need::kRequired) whole["required"] = Json::array({"kind"});
    const std::string default_kind(kind_key.default_text);
    if (default_kind.empty()) return whole;
    const Json assumed = {{"allOf", Json::array({Ref(default_kind), WholeOfKind(path, default_kind)})}};
    all.push_back({{"if", {{"not", {{"required", {"kind"}}}}}}, {"then", assumed}});
    whole["allOf"] = all;
    return whole;
  }

  Json TakeDefinitions() { return Json(definitions_); }

 private:
  static bool Applies(const KeySpec& key, const std::string& kind) { return key.kind.empty() || key.kind == kind; }

  Json ShapeOfKind(const std::string& path, const std::string& kind) {
    Json properties = Json::object();
    for (const KeySpec* key : KeysOf(path)) {
      if (Applies(*key, kind)) properties[std::string(WordOf(*key))] = Value(*key);
    }
    return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  }

  Json WholeOfKind(const std::string& path, const std::string& kind) {
    Json required = Json::array(), properties = Json::object();
    for (const KeySpec* key : KeysOf(path)) {
      if (!Applies(*key, kind)) continue;
      if (key->need == Need::kRequired) required.push_back(WordOf(*key));
      if (key->type != KeyType::kMap && key->type != KeyType::kNamedMaps) continue;
      const Json inner = Whole(InnerPath(*key));
      if (inner.empty()) continue;
      properties[std::string(WordOf(*key))] =
          key->type == KeyType::kMap ? inner : Json{{"additionalProperties", inner}};
    }
    Json whole = Json::object();
    if (!required.empty()) whole["required"] = required;
    if (!properties.empty()) whole["properties"] = properties;
    return whole;
  }

  Json Value(const KeySpec& key) {
    Json schema = TypeOf(key);
    std::string description(key.help);
    if (key.need == Need::kNotBuilt) description += " (not built yet)";
    schema["description"] = description;
    if (!key.default_text.empty()) schema["default"] = Default(key);
    return schema;
  }

  // The table writes defaults as YAML, of which those that are not words are JSON too.
  static Json Default(const KeySpec& key) {
    if (key.type == KeyType::kString || key.type == KeyType::kStrings || key.type == KeyType::kChoice)
      return key.default_text;
    return Json::parse(key.default_text);
  }

  Json TypeOf(const KeySpec& key) {
    const Json text = {{"type", "string"}, {"minLength", 1}};
    switch (key.type) {
      case KeyType::kMap: return Shape(InnerPath(key));
      case KeyType::kNamedMaps:
        return {{"type", "object"},
                {"propertyNames", {{"pattern", kName}}},
                {"additionalProperties", Shape(InnerPath(key))}};
      case KeyType::kListOfMaps: {
        Json items = Shape(InnerPath(key));
        // lists replace, so that their items are always whole; such maps have no kinds
        items.update(Whole(InnerPath(key)));
        return {{"type", "array"}, {"items", items}};
      }
      case KeyType::kString: return text;
      case KeyType::kInteger: return Ranged("integer", key);
      case KeyType::kNumber: return Ranged("number", key);
      case KeyType::kBool: return {{"type", "boolean"}};
      case KeyType::kChoice: return {{"type", "string"}, {"enum", ChoicesOf(key)}};
      case KeyType::kStrings: {
        const Json item = key.choices.empty() ? text : Json{{"type", "string"}, {"enum", ChoicesOf(key)}};
        return {{"anyOf", {item, {{"type", "array"}, {"items", item}, {"minItems", 1}}}}};
      }
      case KeyType::kNumberPair: return Pair("number", key);
      case KeyType::kIntegerPairs: return {{"type", "array"}, {"items", Pair("integer", key)}, {"minItems", 1}};
      case KeyType::kIntegers: return {{"type", "array"}, {"items", Ranged("integer", key)}, {"minItems", 1}};
      case KeyType::kLintLevels: return LintLevels(key);
    }
    return {};
  }

  static Json LintLevels(const KeySpec& key) {
    Json properties = Json::object();
    for (DiagnosticKind kind : AllKinds()) {
      if (!IsLint(kind)) continue;
      properties[std::string(KindNumber(kind))] = {{"type", "string"},
                                                   {"enum", ChoicesOf(key)},
                                                   {"description", Cat(KindName(kind), ": ", KindSummary(kind))},
                                                   {"default", "warn"}};
    }
    return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  }

  std::map<std::string, Json> definitions_;  // by kind: shapes that are used in several places
};

}  // namespace

nlohmann::ordered_json RecipeSchema() {
  SchemaBuilder builder;
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "Planwright recipe"},
                 {"$comment", "made by `plan explain --schema` from the reader's table of keys"}};
  schema.update(builder.Shape(""));
  const Json library = {{"properties", {{"models", {{"additionalProperties", builder.Whole("models.<name>")}}}}}};
  schema["if"] = {{"required", {"extends"}}};
  schema["else"] = {{"if", {{"anyOf", {{{"required", {"name"}}}, {{"required", {"modules"}}}}}}},
                    {"then", builder.Whole("")},
                    {"else", library}};
  schema["definitions"] = builder.TakeDefinitions();
  return schema;
}

}  // namespace planwright
