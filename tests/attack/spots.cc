#include "tests/attack/spots.h"

#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/plan/value_type.h"

namespace planwright::attack {
namespace {

struct Kinds {
  std::map<std::pair<int, std::string>, int> numbers;
  std::vector<std::string> names = {""};
  int Of(int parent, const std::string& key) {
    const auto [it, added] = numbers.try_emplace({parent, key}, static_cast<int>(names.size()));
    if (added) {
      const std::string& around = names[static_cast<size_t>(parent)];
      names.push_back(around.empty() || key[0] == '[' ? around + key : absl::StrCat(around, ".", key));
    }
    return it->second;
  }
};
Kinds& AllKinds() {
  static Kinds kinds;
  return kinds;
}

template <typename T>
const ListRef::Operations* OperationsOf() {
  using List = std::vector<T>;
  static constexpr auto at = [](List& list, size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); };
  static const ListRef::Operations operations = {
      [](const void* list) { return static_cast<const List*>(list)->size(); },
      [](void* list, size_t i) {
        List& items = *static_cast<List*>(list);
        items.erase(at(items, i));
      },
      [](void* list, size_t from, size_t before) {
        List& items = *static_cast<List*>(list);
        T copy = items[from];
        items.insert(at(items, before), std::move(copy));
      },
      [](void* list, size_t a, size_t b) {
        List& items = *static_cast<List*>(list);
        std::swap(items[a], items[b]);
      },
      [](void* list) { static_cast<List*>(list)->clear(); }};
  return &operations;
}

template <typename T>
constexpr bool kIsLeaf = requires(T* x) {
  SpotValue(std::in_place_type<T*>, x);
};

class Walker {
 public:
  static constexpr bool kFills = true;

  explicit Walker(Spots& spots) : spots_(spots) {}

  template <typename T>
  void Object(T& value) {
    const int kind = kind_;
    if constexpr (std::is_same_v<T, Instruction>)
      kind_ = AllKinds().Of(kind_, "[" + std::string(OpName(value.kind)) + "]");
    Describe(*this, value);
    kind_ = kind;
  }

  // Rows of a bridge: the file has them as runs of numbers, without names.
  void Object(Transfer& value) {
    (*this)("from_rank", kFollows, value.from_rank);
    (*this)("to_rank", kFollows, value.to_rank);
    (*this)("first_sample", kFollows, value.first_sample);
    (*this)("end_sample", kFollows, value.end_sample);
  }

  template <typename T>
  void operator()(const char* key, FieldTraits of, T& value) {
    const int kind = std::exchange(kind_, AllKinds().Of(kind_, key));
    Visit(key, -1, of, value);
    kind_ = kind;
  }
  template <typename T>
  void Omittable(const char* key, FieldTraits of, T& value, const std::type_identity_t<T>&) {
    (*this)(key, of, value);
  }
  template <typename T>
  void OutsideDigest(const char* key, T& value, const std::type_identity_t<T>&) {
    const bool in_digest = std::exchange(in_digest_, false);
    (*this)(key, kFree | kKeeps, value);
    in_digest_ = in_digest;
  }

 private:
  template <typename T>
  void Visit(const char* key, int index, FieldTraits of, T& value) {
    if constexpr (std::is_same_v<T, Attributes>) {
      Add(key, index, of, &value);
      const int parent = Enter(key, index), kind = kind_;
      for (auto& [name, attribute] : value) {
        kind_ = AllKinds().Of(kind, name);
        std::visit([&](auto& held) { Visit(name.c_str(), -1, of, held); }, attribute);
      }
      kind_ = kind;
      parent_ = parent;
    } else if constexpr (kIsLeaf<T>) {
      Add(key, index, of, &value);
    } else {
      const int parent = Enter(key, index);
      Object(value);
      parent_ = parent;
    }
  }
  template <typename T>
  void Visit(const char* key, int index, FieldTraits of, std::vector<T>& values) {
    Add(key, index, of, ListRef{&values, OperationsOf<T>()});
    for (size_t i = 0; i < values.size(); ++i) Visit(key, static_cast<int>(i), of, values[i]);
  }
  template <typename T>
  void Visit(const char* key, int index, FieldTraits of, std::optional<T>& value) {
    if (value) Visit(key, index, of, *value);
  }
  int Enter(const char* key, int index) {
    spots_.around.push_back({parent_, key, index});
    return std::exchange(parent_, static_cast<int>(spots_.around.size()) - 1);
  }
  void Add(const char* key, int index, FieldTraits of, SpotValue value) {
    spots_.spots.push_back({kind_, parent_, key, index, value, of, in_digest_});
  }

  Spots& spots_;
  int kind_ = 0, parent_ = -1;
  bool in_digest_ = true;
};

std::string Indexed(const std::string& key, int index) { return index < 0 ? key : absl::StrCat(key, "[", index, "]"); }

struct TextOf {
  std::string operator()(const int* x) const { return std::to_string(*x); }
  std::string operator()(const int64_t* x) const { return std::to_string(*x); }
  std::string operator()(const double* x) const {
    char text[32];
    return std::string(text, std::to_chars(text, std::end(text), *x).ptr);  // the shortest that reads back the same
  }
  std::string operator()(const bool* x) const { return *x ? "true" : "false"; }
  std::string operator()(const char* x) const { return std::string(1, *x); }
  std::string operator()(const std::string* x) const { return absl::StrCat("\"", *x, "\""); }
  std::string operator()(const Axis* x) const { return std::string(AxisName(*x)); }
  std::string operator()(const View* x) const { return std::string(ViewName(*x)); }
  std::string operator()(const OpKind* x) const { return std::string(OpName(*x)); }
  std::string operator()(const DType* x) const { return std::string(DTypeName(*x)); }
  std::string operator()(const TpGradient* x) const { return std::string(TpGradientName(*x)); }
  std::string operator()(const Init::Kind* x) const { return std::string(InitKindName(*x)); }
  std::string operator()(const DataKind* x) const { return std::string(DataKindName(*x)); }
  std::string operator()(const SourceKind* x) const { return std::string(SourceKindName(*x)); }
  std::string operator()(const Output* x) const { return OutputText(*x); }
  std::string operator()(const Attributes* x) const { return absl::StrCat(x->size(), " attributes"); }
  std::string operator()(const ListRef& x) const { return absl::StrCat(x.size(), " items"); }
};

}  // namespace

std::string Spots::PathOf(const Spot& spot) const {
  std::string path = Indexed(spot.key, spot.index);
  for (int at = spot.parent; at >= 0;) {
    const Around& object = around[static_cast<size_t>(at)];
    path = absl::StrCat(Indexed(object.key, object.index), ".", path);
    at = object.parent;
  }
  return path;
}

Spots SpotsOf(Plan& plan) {
  Spots spots;
  Walker(spots).Object(plan);
  return spots;
}

const std::string& KindName(int kind) { return AllKinds().names[static_cast<size_t>(kind)]; }

std::string ValueText(const SpotValue& value) { return std::visit(TextOf(), value); }

}  // namespace planwright::attack
