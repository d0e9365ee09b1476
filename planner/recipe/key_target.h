// Where the value of a key goes: a member of a struct of recipe.h, or of the plan where ranks obey what is written.
// Made from the member alone (key_binding.h), so the type of a key and of its field are said once.
#pragma once

#include <string_view>

#include "planner/plan/instruction.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

enum class KeyType {
  kMap,         // a map with keys of the table
  kNamedMaps,   // names of the author's choosing -> maps
  kListOfMaps,  // a list of maps
  kString,
  kInteger,
  kNumber,
  kBool,
  kChoice,        // one of KeySpec::choices
  kStrings,       // a string or a list of strings
  kNumberPair,    // [a, b]
  kIntegerPairs,  // [[a, b], ...], at least one
  kIntegers,      // [a, b, ...], at least one
  kLintLevels,    // numbers of lints -> one of KeySpec::choices
};

// Its address stands for the struct.
template <typename Struct>
inline constexpr char kStructTag = 0;

// A struct that is filled, by its tag.
struct StructRef {
  const void* tag = nullptr;
  void* object = nullptr;
};

template <typename Struct>
StructRef RefTo(Struct& object) {
  return {&kStructTag<Struct>, &object};
}

struct KeyTarget {
  KeyType type;
  // tag of the struct; null: the reader does something else with the value, or nobody needs it
  const void* owner = nullptr;
  // Of a value: puts it into its member. `name`: of a number of a model, its constant ("moe.top_k").
  void (*read)(const YamlNode& value, std::string_view name, void* owner) = nullptr;
  // Of a number: adds it to the constants of a model.
  void (*number)(void* owner, std::string_view name, Attributes& numbers) = nullptr;
  // Of a map whose keys fill a struct of their own: the member. Null object: an optional one that is not given.
  StructRef (*section)(void* owner, bool given) = nullptr;
};

}  // namespace planwright
