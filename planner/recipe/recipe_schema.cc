#include "planner/recipe/recipe_schema.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";  // the rule of CheckName in key_checks.cc

// Whole numbers without a decimal point: people read schemas too.
Json Number(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) <= static_cast<double>(kLargestNumber);
  return whole ? Json(static_cast<int64_t>(value)) : Json(value);
}

void AddRange(const NumberRange& range, Json& schema) {
  if (range.any()) return;
  schema[range.above ? "exclusiveMinimum" : "minimum"] = Number(range.low);
  schema[range.below ? "exclusiveMaximum" : "maximum"] = Number(range.high);
}

Json Ranged(const char* type, const KeySpec& spec) {
  Json schema = {{"type", type}};
  AddRange(spec.range, schema);
  return schema;
}

// An array of two numbers.
Json Pair(const char* type, const KeySpec& spec) {
  return {{"type", "array"}, {"items", Ranged(type, spec)}, {"minItems", 2}, {"maxItems", 2}};
}

// A reference to one of `definitions`.
Json Ref(const std::string& definition) { return {{"$ref", "#/definitions/" + definition}}; }

// Holds for maps with this kind.
Json KindIs(const std::string& kind) { return {{"properties", {{"kind", {{"const", kind}}}}}, {"required", {"kind"}}}; }

// The possible kinds of the maps at `path`; empty if the kind does not change their keys.
std::vector<std::string> KindsOf(const std::string& path) {
  const KeySpec* kind = FindKey(path, "kind", "");
  if (kind == nullptr) return {};
  for (const KeySpec* key : KeysOf(path)) {
    if (!key->kind.empty()) return ChoicesOf(*kind);
  }
  return {};
}

// Kinds of two places may have one name: those of a list's items get that of the list.
std::string DefinitionName(const std::string& path, const std::string& kind) {
  if (!path.ends_with("[]")) return kind;
  const std::string list = path.substr(0, path.size() - 2);
  return Cat(list.substr(list.rfind('.') + 1), "_", kind);  // "data.sources[]" -> "sources_tokens"
}

class SchemaBuilder {
 public:
  // The keys that the map at `path` may have, with their values. Requires none of them.
  Json Shape(const std::string& path) {
    const std::vector<std::string> kinds = KindsOf(path);
    if (kinds.empty()) return ShapeOfKind(path, "");
    const KeySpec& kind_key = *FindKey(path, "kind", "");
    // draft-07 has no switch: one if/then for each kind. `additionalProperties: false` sees only the properties of its
    // own schema, so that each kind needs a complete one.
    Json any = Json::array(), all = Json::array();
    for (const std::string& kind : kinds) {
      const std::string name = DefinitionName(path, kind);
      definitions_.emplace(name, ShapeOfKind(path, kind));
      any.push_back(Ref(name));
      all.push_back({{"if", KindIs(kind)}, {"then", Ref(name)}});
    }
    // A map without a kind may be merged with one that has it.
    all.push_back({{"if", {{"not", {{"required", {"kind"}}}}}}, {"then", {{"anyOf", any}}}});
    return {{"type", "object"}, {"properties", {{"kind", Value(kind_key)}}}, {"allOf", all}};
  }

  // The keys that the map at `path` must have in a file that is complete by itself: only `required`, here and in the
  // maps inside.
  Json Whole(const std::string& path) {
    const std::vector<std::string> kinds = KindsOf(path);
    if (kinds.empty()) return WholeOfKind(path, "");
    Json all = Json::array();
    for (const std::string& kind : kinds) all.push_back({{"if", KindIs(kind)}, {"then", WholeOfKind(path, kind)}});
    Json whole = {{"allOf", all}};
    const KeySpec& kind_key = *FindKey(path, "kind", "");
    if (kind_key.need == Need::kRequired) whole["required"] = Json::array({"kind"});
    // A map without a kind has the default kind, with its required keys.
    const std::string default_kind(kind_key.default_text);
    if (default_kind.empty()) return whole;
    const Json assumed = {
        {"allOf", Json::array({Ref(DefinitionName(path, default_kind)), WholeOfKind(path, default_kind)})}};
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
    Json required = Json::array(), one_of = Json::array(), properties = Json::object();
    for (const KeySpec* key : KeysOf(path)) {
      if (!Applies(*key, kind)) continue;
      if (key->need == Need::kRequired && key->or_key.empty()) required.push_back(WordOf(*key));
      if (!key->or_key.empty()) one_of.push_back({{"required", {WordOf(*key)}}});
      if (key->type != KeyType::kMap && key->type != KeyType::kNamedMaps) continue;
      const Json inner = Whole(InnerPath(*key));
      if (inner.empty()) continue;  // nothing is required inside
      properties[std::string(WordOf(*key))] =
          key->type == KeyType::kMap ? inner : Json{{"additionalProperties", inner}};
    }
    Json whole = Json::object();
    if (!required.empty()) whole["required"] = required;
    if (!one_of.empty()) whole["oneOf"] = one_of;
    if (!properties.empty()) whole["properties"] = properties;
    return whole;
  }

  Json Value(const KeySpec& key) {
    Json schema = TypeOf(key);
    schema["description"] = key.help;
    if (!key.default_text.empty()) schema["default"] = Default(key);
    return schema;
  }

  // The table has defaults as YAML. Those that are not text are also valid JSON.
  static Json Default(const KeySpec& key) {
    if (key.type == KeyType::kString || key.type == KeyType::kStrings || key.type == KeyType::kChoice ||
        key.type == KeyType::kWordOrCount)
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
        const Json whole = Whole(InnerPath(key));
        // Lists replace, so that the items of a list are always complete.
        if (items.contains("allOf")) {
          items = {{"allOf", {items, whole}}};
        } else {
          items.update(whole);
        }
        Json list = {{"type", "array"}, {"items", items}};
        if (key.need == Need::kRequired) list["minItems"] = 1;
        return list;
      }
      case KeyType::kString: return text;
      case KeyType::kInteger: return Ranged("integer", key);
      case KeyType::kNumber: return Ranged("number", key);
      case KeyType::kBool: return {{"type", "boolean"}};
      case KeyType::kChoice: return {{"type", "string"}, {"enum", ChoicesOf(key)}};
      case KeyType::kWordOrCount:
        return {{"anyOf", {{{"type", "string"}, {"enum", ChoicesOf(key)}}, Ranged("integer", key)}}};
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

  std::map<std::string, Json> definitions_;  // by kind: shapes that several places refer to
};

}  // namespace

nlohmann::ordered_json RecipeSchema() {
  SchemaBuilder builder;
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "Planwright recipe"},
                 {"$comment", "made by `plan explain --schema` from the reader's table of keys"}};
  schema.update(builder.Shape(""));
  const Json library = {{"properties", {{"models", {{"additionalProperties", builder.Whole("models.<name>")}}}}}};
  // See the header: with `extends` nothing is required; else it is a whole recipe or a library.
  schema["if"] = {{"required", {"extends"}}};
  schema["else"] = {{"if", {{"anyOf", {{{"required", {"name"}}}, {{"required", {"modules"}}}}}}},
                    {"then", builder.Whole("")},
                    {"else", library}};
  schema["definitions"] = builder.TakeDefinitions();
  return schema;
}

}  // namespace planwright
