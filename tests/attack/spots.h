// Every spot of a plan that can be damaged: each number, word and list, found by walking plan_fields.h. So a field
// that is added to the plan is attacked without a line of new code.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/plan_fields.h"

namespace planwright::attack {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t Below(size_t n) { return static_cast<size_t>(engine_() % n); }  // n > 0
  bool Chance(int percent) { return Below(100) < static_cast<size_t>(percent); }
  template <typename T>
  T& Pick(std::vector<T>& items) {
    return items[Below(items.size())];
  }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[Below(items.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// A list of any type.
struct ListRef {
  struct Operations {
    size_t (*size)(const void*);
    void (*erase)(void*, size_t);
    void (*copy)(void*, size_t from, size_t before);
    void (*swap)(void*, size_t, size_t);
    void (*clear)(void*);
  };
  void* list;
  const Operations* operations;
  size_t size() const { return operations->size(list); }
};

using SpotValue = std::variant<int*, int64_t*, double*, bool*, char*, std::string*, Axis*, View*, OpKind*, DType*,
                               TpGradient*, Init::Kind*, DataKind*, SourceKind*, Output*, Attributes*, ListRef>;

struct Spot {
  int kind = 0;     // number of KindName: spots of one kind differ by list indices only
  int parent = -1;  // the spot or object around it, in Spots::parents
  const char* key = "";
  int index = -1;  // in a list; -1: no item of a list
  SpotValue value;
  FieldTraits traits = kFollows;
  bool in_digest = true;
};

struct Spots {
  struct Around {
    int parent;
    std::string key;
    int index;
  };
  std::vector<Around> around;
  std::vector<Spot> spots;
  std::string PathOf(const Spot& spot) const;  // "roles[1].step[3].attributes.dim"
};

// All spots of a plan. Pointers are good until a list of the plan changes its size.
Spots SpotsOf(Plan& plan);

const std::string& KindName(int kind);          // "roles.step[all_reduce].attributes.dim"
std::string ValueText(const SpotValue& value);  // as a plan's file has it; of a list: its size

}  // namespace planwright::attack
