// What the table of keys writes for a KeyTarget: To<&BatchRecipe::global_samples>, Section<&Recipe::batch>.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "planner/diagnostics/location.h"
#include "planner/recipe/fill_defaults.h"
#include "planner/recipe/key_target.h"

namespace planwright {

// The value of a node that keeps to its key. A default's place in the table is no place of the recipe.
void ReadValue(const YamlNode& node, int64_t& target);
void ReadValue(const YamlNode& node, double& target);
void ReadValue(const YamlNode& node, bool& target);
void ReadValue(const YamlNode& node, std::string& target);
void ReadValue(const YamlNode& node, std::vector<int64_t>& target);
Location PlaceInRecipe(const YamlNode& node);

template <typename T>
void ReadValue(const YamlNode& node, Located<T>& target) {
  Located<T> value;
  ReadValue(node, value.value);
  value.where = PlaceInRecipe(node);
  target = std::move(value);
}
template <typename T>
void ReadValue(const YamlNode& node, std::optional<T>& target) {
  ReadValue(node, target.emplace());
}
// A list, or one value in place of a list of one.
template <typename T>
void ReadValue(const YamlNode& node, std::vector<Located<T>>& target) {
  target.clear();
  if (node.is_scalar()) ReadValue(node, target.emplace_back());
  for (const YamlNode& item : node.items) ReadValue(item, target.emplace_back());
}

// The type of a key whose field is a T. A string with choices is a choice.
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
inline constexpr KeyType kTypeOfField<std::vector<int64_t>> = KeyType::kIntegers;
template <>
inline constexpr KeyType kTypeOfField<std::vector<Located<std::string>>> = KeyType::kStrings;
template <>
inline constexpr KeyType kTypeOfField<std::vector<Located<std::vector<int64_t>>>> = KeyType::kIntegerPairs;
template <typename T>
inline constexpr KeyType kTypeOfField<Located<T>> = kTypeOfField<T>;
template <typename T>
inline constexpr KeyType kTypeOfField<std::optional<T>> = kTypeOfField<T>;

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
void AddNumber(void* owner, std::string_view name, Attributes& numbers) {
  using T = typename MemberTypes<member>::Field;
  if constexpr (std::is_same_v<T, Located<int64_t>> || std::is_same_v<T, Located<double>>) {
    numbers.insert_or_assign(std::string(name), *FieldOf<member>(owner));
  }
}

// The value goes into this member.
template <auto member>
inline constexpr KeyTarget To = {kTypeOfField<typename MemberTypes<member>::Field>,
                                 &kStructTag<typename MemberTypes<member>::Owner>, ReadMember<member>,
                                 AddNumber<member>};

// Two numbers [a, b] go into these.
template <auto first, auto second>
inline constexpr KeyTarget ToPair = {KeyType::kNumberPair, &kStructTag<typename MemberTypes<first>::Owner>,
                                     [](const YamlNode& value, std::string_view, void* owner) {
                                       ReadValue(value.items[0], FieldOf<first>(owner));
                                       ReadValue(value.items[1], FieldOf<second>(owner));
                                     }};

// A number that no field is needed for: it goes under the name of its constant into this map of a model.
template <auto map, typename Number>
inline constexpr KeyTarget ToConstant = {kTypeOfField<Number>, &kStructTag<typename MemberTypes<map>::Owner>,
                                         [](const YamlNode& value, std::string_view name, void* owner) {
                                           Number number{};
                                           ReadValue(value, number);
                                           FieldOf<map>(owner).insert_or_assign(std::string(name), number);
                                         },
                                         [](void* owner, std::string_view name, Attributes& numbers) {
                                           numbers.insert_or_assign(std::string(name),
                                                                    FieldOf<map>(owner).at(std::string(name)));
                                         }};

template <typename T>
StructRef RefToSection(T& section, bool) {
  return RefTo(section);
}
template <typename T>
StructRef RefToSection(std::optional<T>& section, bool given) {
  return given ? RefTo(section.emplace(Defaults<T>())) : StructRef();
}

// A map whose keys fill this member.
template <auto member>
inline constexpr KeyTarget Section = {
    .type = KeyType::kMap,
    .owner = &kStructTag<typename MemberTypes<member>::Owner>,
    .section = [](void* owner, bool given) { return RefToSection(FieldOf<member>(owner), given); }};

// No field: the reader makes something else of it, or only its check matters. The keys of such a map fill what is
// filled around it.
inline constexpr KeyTarget kMap = {KeyType::kMap}, kNamedMaps = {KeyType::kNamedMaps},
                           kListOfMaps = {KeyType::kListOfMaps}, kText = {KeyType::kString},
                           kTexts = {KeyType::kStrings}, kLintLevels = {KeyType::kLintLevels};

}  // namespace planwright
