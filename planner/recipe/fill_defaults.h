// Structs of the recipe as they are when a recipe says nothing: every field that has a key with a default has its
// default.
#pragma once

namespace planwright {

// The address of kStructTag<S> stands for the type S. So the table of keys (recipe_keys.h) can name the struct of a
// field without a list of all structs.
template <typename Struct>
inline constexpr char kStructTag = 0;

// A struct to fill, with the tag of its type.
struct StructRef {
  const void* tag = nullptr;
  void* object = nullptr;
};

template <typename Struct>
StructRef RefTo(Struct& object) {
  return {&kStructTag<Struct>, &object};
}

// Sets every field that has a key with a default, also in the sections of the struct.
void FillDefaults(StructRef target);

template <typename Struct>
Struct Defaults() {
  Struct filled;
  FillDefaults(RefTo(filled));
  return filled;
}

}  // namespace planwright
