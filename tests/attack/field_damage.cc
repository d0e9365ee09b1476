// Damages of single fields, and of all fields that have the same value.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/attack/damages.h"

namespace planwright::attack {
namespace {

// Which other spots get the same damage.
enum class Scope {
  kAlone,
  kSameKind,  // those of the same kind with the same value: of all roles, of all layers
  kSameKey,   // those with the same key and value, wherever they are
  kAnywhere,  // texts and numbers of the same value, wherever they are: a name is changed on all ends
  kSwap,      // as kSameKey, and those with the new value get the old one
};
constexpr const char* kScopeNames[] = {"", ", all of its kind", ", all of its key", ", everywhere", ", swapped"};

template <typename T>
std::vector<T*> PointersOf(Spots& spots, const std::function<bool(const Spot&)>& wanted) {
  std::vector<T*> found;
  for (Spot& spot : spots.spots)
    if (T** value = std::get_if<T*>(&spot.value); value && wanted(spot)) found.push_back(*value);
  return found;
}

template <typename T>
T NewNumber(T old, const std::vector<T*>& others, Random& random) {
  const T large = sizeof(T) == 4 ? static_cast<T>(1 << 28) : static_cast<T>(int64_t{1} << 40);
  const T choices[] = {old + 1, old - 1, old * 2, old / 2, 0, -old, 1, -1, large};
  if (!others.empty() && random.Chance(40)) return *random.Pick(others);
  return choices[random.Below(std::size(choices))];
}

void DamageLayout(Layout& layout, Random& random) {
  const Axis axis = random.Chance(50) || layout.empty() ? static_cast<Axis>(random.Below(7)) : layout.begin()->first;
  if (layout.contains(axis) && random.Chance(40)) {
    layout.erase(axis);
    return;
  }
  AxisLayout& state = layout[axis];
  switch (random.Below(4)) {
    case 0: state.state = AxisLayout::State::kPartial; break;
    case 1: state = {AxisLayout::State::kSharded, static_cast<int>(random.Below(3)), false}; break;
    case 2: state.zigzag = !state.zigzag; break;
    default: ++state.dim;
  }
}

void DamageType(ValueType& type, const std::vector<Output*>& others, Random& random) {
  switch (random.Below(9)) {
    case 0: type.dtype = static_cast<DType>(random.Below(4)); break;
    case 1:
      if (!type.dims.empty()) type.dims.erase(type.dims.begin() + static_cast<long>(random.Below(type.dims.size())));
      break;
    case 2: type.dims.insert(type.dims.begin(), int64_t{1}); break;
    case 3:
      if (type.dims.size() > 1) std::swap(type.dims.front(), type.dims.back());
      break;
    case 4:
      if (!type.dims.empty()) {
        Dim& dim = random.Pick(type.dims);
        if (auto* size = std::get_if<int64_t>(&dim)) *size = NewNumber<int64_t>(*size, {}, random);
      }
      break;
    case 5: DamageLayout(type.layout, random); break;
    case 6:
      if (type.gradient && random.Chance(50)) {
        type.gradient.reset();
      } else if (type.gradient) {
        DamageLayout(*type.gradient, random);
      } else {
        type.gradient.emplace();
      }
      break;
    case 7: type.host = !type.host; break;
    default: type = random.Pick(others)->type;
  }
}

class FieldDamage {
 public:
  FieldDamage(Plan& plan, Random& random) : random_(random), spots_(SpotsOf(plan)) {}

  std::optional<Damage> Make() {
    std::map<int, std::vector<size_t>> by_kind;
    for (size_t i = 0; i < spots_.spots.size(); ++i)
      if (spots_.spots[i].in_digest || random_.Chance(5)) by_kind[spots_.spots[i].kind].push_back(i);
    auto it = std::next(by_kind.begin(), static_cast<long>(random_.Below(by_kind.size())));
    const Spot& spot = spots_.spots[random_.Pick(it->second)];
    scope_ = random_.Chance(50) ? Scope::kAlone : static_cast<Scope>(random_.Below(5));
    path_ = spots_.PathOf(spot);
    const bool changed = std::visit([&](auto value) { return Change(spot, value); }, spot.value);
    if (!changed) return std::nullopt;
    return Damage{absl::StrCat("field ", KindName(spot.kind), kScopeNames[static_cast<int>(scope_)]),
                  absl::StrCat(path_, ": ", words_, kScopeNames[static_cast<int>(scope_)])};
  }

 private:
  bool Takes(const Spot& spot, const Spot& other) const {
    switch (scope_) {
      case Scope::kAlone: return &spot == &other;
      case Scope::kSameKind: return spot.kind == other.kind;
      case Scope::kSameKey:
      case Scope::kSwap: return std::string_view(spot.key) == other.key;
      case Scope::kAnywhere: return true;
    }
    return false;
  }

  // Writes `made` to the spot and to those of its scope.
  template <typename T>
  bool Set(const Spot& spot, T* value, const T& made) {
    const T old = *value;
    if (made == old) return false;
    words_ = ValueText(SpotValue(value));
    for (Spot& other : spots_.spots) {
      T** held = std::get_if<T*>(&other.value);
      if (!held || !Takes(spot, other)) continue;
      if (**held == old) {
        **held = made;
      } else if (scope_ == Scope::kSwap && **held == made) {
        **held = old;
      }
    }
    absl::StrAppend(&words_, " -> ", ValueText(SpotValue(value)));
    return true;
  }

  template <typename T>
  std::vector<T*> OthersOf(const Spot& spot) {
    const bool key = random_.Chance(60);
    return PointersOf<T>(spots_, [&](const Spot& other) {
      return key ? std::string_view(spot.key) == other.key : spot.kind == other.kind;
    });
  }

  bool Change(const Spot& spot, int* value) {
    return Set(spot, value, NewNumber(*value, OthersOf<int>(spot), random_));
  }
  bool Change(const Spot& spot, int64_t* value) {
    return Set(spot, value, NewNumber(*value, OthersOf<int64_t>(spot), random_));
  }
  bool Change(const Spot& spot, double* value) {
    const double choices[] = {*value * 2, *value / 2, *value + 1, 0, -*value, std::nextafter(*value, 10), 1, 1e30};
    const auto others = OthersOf<double>(spot);
    return Set(spot, value, random_.Chance(20) ? *random_.Pick(others) : choices[random_.Below(std::size(choices))]);
  }
  bool Change(const Spot& spot, bool* value) { return Set(spot, value, !*value); }
  bool Change(const Spot& spot, char* value) {
    return Set(spot, value, random_.Chance(30) ? 'X' : *random_.Pick(OthersOf<char>(spot)));
  }
  bool Change(const Spot& spot, std::string* value) {
    std::string made = "another";
    if (random_.Chance(10)) {
      made.clear();
    } else if (random_.Chance(10)) {
      made = *value + "x";
    } else if (random_.Chance(85)) {
      std::vector<std::string*> others = OthersOf<std::string>(spot);
      if (random_.Chance(50)) {  // of the same list of instructions or objects
        const int list = ListAround(spot);
        others = PointersOf<std::string>(spots_, [&](const Spot& other) { return ListAround(other) == list; });
      }
      if (!others.empty()) made = *random_.Pick(others);
    }
    return Set(spot, value, made);
  }
  bool Change(const Spot& spot, Output* value) {
    Output made = *value;
    if (random_.Chance(25)) {
      made.name = random_.Pick(OthersOf<Output>(spot))->name;
    } else {
      DamageType(made.type, OthersOf<Output>(spot), random_);
    }
    const std::string old = OutputText(*value);
    if (OutputText(made) == old) return false;
    words_ = absl::StrCat(old, " -> ", OutputText(made));
    for (Spot& other : spots_.spots) {
      Output** held = std::get_if<Output*>(&other.value);
      if (held && Takes(spot, other) && OutputText(**held) == old) **held = made;
    }
    return true;
  }
  bool Change(const Spot& spot, Attributes* value) {
    const auto others = PointersOf<Attributes>(spots_, [](const Spot&) { return true; });
    const Attributes& other = *random_.Pick(others);
    if (!other.empty() && random_.Chance(50)) {
      const auto& [name, held] = *std::next(other.begin(), static_cast<long>(random_.Below(other.size())));
      if (value->contains(name)) return false;
      words_ = absl::StrCat("gets the attribute ", name);
      const Attribute copy = held;
      const std::string key = name;
      for (Spot& each : spots_.spots)
        if (Attributes** attributes = std::get_if<Attributes*>(&each.value); attributes && Takes(spot, each))
          (*attributes)->try_emplace(key, copy);
      return true;
    }
    if (value->empty()) return false;
    const std::string gone = std::next(value->begin(), static_cast<long>(random_.Below(value->size())))->first;
    words_ = absl::StrCat("loses the attribute ", gone);
    for (Spot& each : spots_.spots)
      if (Attributes** attributes = std::get_if<Attributes*>(&each.value); attributes && Takes(spot, each))
        (*attributes)->erase(gone);
    return true;
  }
  template <typename T>
  requires std::is_enum_v<T>
  bool Change(const Spot& spot, T* value) {
    const size_t most = std::is_same_v<T, Axis>         ? 7
                        : std::is_same_v<T, View>       ? 2
                        : std::is_same_v<T, DType>      ? 4
                        : std::is_same_v<T, TpGradient> ? 3
                        : std::is_same_v<T, Init::Kind> ? 6
                        : std::is_same_v<T, DataKind>   ? DataKinds().size()
                        : std::is_same_v<T, SourceKind> ? SourceKinds().size()
                                                        : 1;
    if constexpr (std::is_same_v<T, OpKind>) return Set(spot, value, *random_.Pick(OthersOf<OpKind>(spot)));
    return Set(spot, value, static_cast<T>(random_.Below(most)));
  }
  bool Change(const Spot& spot, ListRef list) {
    // The same in each list of its kind: those inside a list that changes are not touched after it.
    const int kind = spot.kind;
    const size_t size = list.size();
    const size_t how = random_.Below(6);
    if (size == 0) return false;
    const size_t a = random_.Below(size), b = random_.Below(size);
    if (how == 2 && a == b) return false;
    if (scope_ != Scope::kAlone) scope_ = Scope::kSameKind;
    const auto damage = [&](ListRef each) {
      switch (how) {
        case 0: each.operations->erase(each.list, a); break;
        case 1: each.operations->copy(each.list, a, b); break;
        case 2: each.operations->swap(each.list, a, b); break;
        case 3: each.operations->copy(each.list, a, size); break;
        case 4:
          for (size_t i = 0; 2 * i + 1 < size; ++i) each.operations->swap(each.list, i, size - 1 - i);
          break;
        default: each.operations->clear(each.list);
      }
    };
    const char* names[] = {"without item ",          "twice item ",    "swapped item ",
                           "at the end again item ", "reversed, not ", "emptied, not "};
    words_ = absl::StrCat(names[how], a, " of ", size, how == 1 || how == 2 ? absl::StrCat(" and ", b) : "");
    if (scope_ == Scope::kAlone) {
      damage(list);
    } else {
      // From the last one on: lists that lie in another list come behind it, and move when it changes.
      for (auto other = spots_.spots.rbegin(); other != spots_.spots.rend(); ++other)
        if (ListRef* each = std::get_if<ListRef>(&other->value); each && other->kind == kind && each->size() == size)
          damage(*each);
    }
    return true;
  }

  int ListAround(const Spot& spot) const {
    return spot.parent < 0 ? -1 : spots_.around[static_cast<size_t>(spot.parent)].parent;
  }

  Random& random_;
  Spots spots_;
  Scope scope_ = Scope::kAlone;
  std::string path_, words_;
};

}  // namespace

std::optional<Damage> DamageField(Plan& plan, Random& random) { return FieldDamage(plan, random).Make(); }

}  // namespace planwright::attack
