// Where the value of a key goes: a field of a struct of recipe.h, or of the plan. The table of keys names the field, as
// in To<&BatchRecipe::global_samples> or Section<&Recipe::batch>; the type of the key follows from the type of the
// field, so that it is written only once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "planner/base/text/location.h"
#include "planner/plan/instruction.h"
#include "planner/recipe/fill_defaults.h"
#include "planner/recipe/recipe.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

enum class KeyType {
  kMap,         // a map with keys of the table
  kNamedMaps,   // a map from names of the author's choice to maps
  kListOfMaps,  // a list of maps
  kString,
  kInteger,
  kNumber,
  kBool,
  kChoice,        // one of KeySpec::choices
  kWordOrCount,   // one of KeySpec::choices, or an integer
  kStrings,       // a string or a list of strings
  kNumberPair,    // [a, b]
  kIntegerPairs,  // [[a, b], ...], at least one
  kIntegers,      // [a, b, ...], at least one
  kLintLevels,    // a map from numbers of lints to one of KeySpec::choices
};

// The functions know the type of the field; the table of keys does not need to.
struct KeyTarget {
  KeyType type;
  // The tag of the struct that has the field. Null: no field; the reader uses the value in another way, or only checks
  // it.
  const void* owner = nullptr;
  // For a value: writes it into the field of `owner`. `name`: of a key inside a model, its path there ("moe.top_k").
  void (*read)(const YamlNode& value, std::string_view name, void* owner) = nullptr;
  // For a section, whose keys fill a struct of their own: that struct. `given`: whether the recipe has the section. The
  // object is null for an optional section that is not given.
  StructRef (*section)(void* owner, bool given) = nullptr;
  // For a value that is missing or wrong: marks the field as broken, at the value's location.
  void (*lose)(const Location& where, std::string_view name, void* owner) = nullptr;
};

// Reads a node that has passed the checks of its key (key_checks.h).
void ReadValue(const YamlNode& node, int64_t& target);
void ReadValue(const YamlNode& node, double& target);
void ReadValue(const YamlNode& node, bool& target);
void ReadValue(const YamlNode& node, std::string& target);
void ReadValue(const YamlNode& node, std::vector<int64_t>& target);
void ReadValue(const YamlNode& node, DataKind& target);
void ReadValue(const YamlNode& node, SourceKind& target);
void ReadValue(const YamlNode& node, Decimal& target);
void ReadValue(const YamlNode& node, WordOrCount& target);

// The location of a node; none for a default, whose text is in the table of keys and not in a recipe.
Location LocationInRecipe(const YamlNode& node);

template <typename T>
void ReadValue(const YamlNode& node, Located<T>& target) {
  Located<T> value;
  ReadValue(node, value.value);
  value.where = LocationInRecipe(node);
  target = std::move(value);
}
template <typename T>
void ReadValue(const YamlNode& node, std::optional<T>& target) {
  ReadValue(node, target.emplace());
}
// A list; a single value stands for a list of one.
template <typename T>
void ReadValue(const YamlNode& node, std::vector<Located<T>>& target) {
  target.clear();
  if (node.is_scalar()) ReadValue(node, target.emplace_back());
  for (const YamlNode& item : node.items) ReadValue(item, target.emplace_back());
}

// Marks a field as broken. Fields that go into the plan as they are have no location: no check reads them.
template <typename T>
void MarkBroken(const Location&, T&) {}
template <typename T>
void MarkBroken(const Location& where, Located<T>& field) {
  field.where = where;
  field.where.broken = true;
}
template <typename T>
void MarkBroken(const Location& where, std::optional<T>& field) {
  MarkBroken(where, field.emplace());
}
template <typename T>
void MarkBroken(const Location& where, std::vector<Located<T>>& field) {
  field.assign(1, {});
  MarkBroken(where, field.front());
}

// The type of a key whose field has type T. KeySpec::type makes it a choice if the key has choices.
template <typename T>
inline constexpr KeyType kTypeOfField = T::no_key_has_fields_of_this_type;
template <>
inline constexpr KeyType kTypeOfField<int64_t> = KeyType::kInteger;
template <>
inline constexpr KeyType kTypeOfField<double> = KeyType::kNumber;
template <>
inline constexpr KeyType kTypeOfField<bool> = KeyType::kBool;
template <>
inline constexpr KeyType kTypeOfField<std::string> = KeyType::kString;
template <>
inline constexpr KeyType kTypeOfField<Decimal> = KeyType::kNumber;
template <>
inline constexpr KeyType kTypeOfField<WordOrCount> = KeyType::kWordOrCount;
template <>
inline constexpr KeyType kTypeOfField<DataKind> = KeyType::kChoice;
template <>
inline constexpr KeyType kTypeOfField<SourceKind> = KeyType::kChoice;
template <>
inline constexpr KeyType kTypeOfField<std::vector<int64_t>> = KeyType::kIntegers;
template <>
inline constexpr KeyType kTypeOfField<std::vector<Located<std::string>>> = KeyType::kStrings;
template <>
inline constexpr KeyType kTypeOfField<std::vector<Located<std::vector<int64_t>>>> = KeyType::kIntegerPairs;
template <typename T>
inline constexpr KeyType kTypeOfField<Located<T>> = kTypeOfField<T>;
template <typename T>
inline constexpr KeyType kTypeOfField<std::optional<T>> = kTypeOfField<T>;

// The struct and the field type of a pointer to member.
template <auto member>
struct MemberTypes;
template <typename Struct, typename T, T Struct::*member>
struct MemberTypes<member> {
  using Owner = Struct;
  using Field = T;
};

template <auto member>
auto& FieldOf(void* owner) {
  return static_cast<typename MemberTypes<member>::Owner*>(owner)->*member;
}

template <auto member>
void ReadMember(const YamlNode& value, std::string_view, void* owner) {
  ReadValue(value, FieldOf<member>(owner));
}

template <auto member>
void LoseMember(const Location& where, std::string_view, void* owner) {
  MarkBroken(where, FieldOf<member>(owner));
}

// Writes the value into this field.
template <auto member>
inline constexpr KeyTarget To = {.type = kTypeOfField<typename MemberTypes<member>::Field>,
                                 .owner = &kStructTag<typename MemberTypes<member>::Owner>,
                                 .read = ReadMember<member>,
                                 .lose = LoseMember<member>};

// Writes two numbers [a, b] into these fields.
template <auto first, auto second>
inline constexpr KeyTarget ToPair = {KeyType::kNumberPair, &kStructTag<typename MemberTypes<first>::Owner>,
                                     [](const YamlNode& value, std::string_view, void* owner) {
                                       ReadValue(value.items[0], FieldOf<first>(owner));
                                       ReadValue(value.items[1], FieldOf<second>(owner));
                                     }};

template <typename T>
StructRef RefToSection(T& section, bool) {
  return RefTo(section);
}
template <typename T>
StructRef RefToSection(std::optional<T>& section, bool given) {
  return given ? RefTo(section.emplace(Defaults<T>())) : StructRef();
}

// A map whose keys fill this member, a struct.
template <auto member>
inline constexpr KeyTarget Section = {
    .type = KeyType::kMap,
    .owner = &kStructTag<typename MemberTypes<member>::Owner>,
    .section = [](void* owner, bool given) { return RefToSection(FieldOf<member>(owner), given); }};

// Keys without a field: the reader uses the value in another way, or only checks it. The keys inside such a map fill
// the structs of the map around it.
inline constexpr KeyTarget kMap = {KeyType::kMap}, kNamedMaps = {KeyType::kNamedMaps},
                           kListOfMaps = {KeyType::kListOfMaps}, kTexts = {KeyType::kStrings},
                           kLintLevels = {KeyType::kLintLevels};

}  // namespace planwright
