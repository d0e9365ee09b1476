#include "planner/plan/statement/prime_module.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"

namespace planwright {
namespace {

using std::string;

int64_t NextPrime(int64_t after) {
  for (int64_t candidate = after + 1;; ++candidate) {
    bool prime = true;
    for (int64_t factor = 2; prime && factor * factor <= candidate; ++factor) prime = candidate % factor != 0;
    if (prime) return candidate;
  }
}

// Constants that keep every line `needs`.
class Constants {
 public:
  explicit Constants(const ModelStatement& statement) {
    int64_t prime = 11;
    for (const StatedConstant& constant : statement.constants)
      values_[constant.name] = constant.flag ? 1 : static_cast<double>(prime = NextPrime(prime));
    // A factor that one line brings may be what another one lacks. Lines that no sizes keep never end.
    constexpr int kRounds = 32;
    bool changed = true;
    for (int round = 0; changed && round < kRounds; ++round) {
      changed = false;
      for (const auto& [name, piece] : PiecesOf(statement)) {
        for (const StatedNeed& need : piece->needs) changed = Keep(need) || changed;
      }
    }
  }

  Attributes Typed(const ModelStatement& statement) const {
    Attributes constants;
    for (const StatedConstant& constant : statement.constants) {
      const double value = Inside(values_.at(constant.name));
      if (constant.otherwise && Of(*constant.otherwise) == value) continue;
      if (constant.real) constants[constant.name] = value + 0.5;
      if (!constant.real) constants[constant.name] = static_cast<int64_t>(value);
    }
    return constants;
  }

 private:
  double Of(const Expression& formula) const {
    return formula.Evaluate([&](const string& name) {
      const auto value = values_.find(name);
      return value == values_.end() ? std::nan("") : value->second;
    });
  }

  // What is larger is of lines that no sizes keep.
  static double Inside(double value) {
    constexpr auto kLargest = static_cast<double>(kLargestNumber);
    return value >= -kLargest && value <= kLargest ? value : kLargest;
  }

  // Multiplies a constant until the line holds. Returns whether it had to.
  bool Keep(const StatedNeed& need) {
    double divisor = need.relation == StatedNeed::Relation::kMultiple ? Of(*need.right) : 1;
    for (Axis axis : need.axes) divisor *= PrimeOf(axis);
    if (need.relation == StatedNeed::Relation::kAtMost) {
      const auto most = values_.find(need.right->text());
      if (most == values_.end() || Of(need.left) <= most->second) return false;  // a limit, or it holds
      most->second *= 13;
      return true;
    }
    const double rest = std::fmod(Of(need.left), divisor);
    // It holds, or it is of no constant, which the checker says.
    if (rest == 0 || std::isnan(rest) || need.left.names().empty()) return false;
    values_.at(need.left.names().front()) *= divisor;
    return true;
  }

  std::map<string, double> values_;
};

}  // namespace

int PrimeOf(Axis axis) {
  switch (axis) {
    case Axis::kTp: return 2;
    case Axis::kCp: return 3;
    case Axis::kEp: return 5;
    case Axis::kExpertTp: return 7;
    default: Bug("no size is cut over " + string(AxisName(axis)));
  }
}

// By name: the pieces of a statement.
std::map<string, const StatedPiece*> PiecesOf(const ModelStatement& statement) {
  std::map<string, const StatedPiece*> pieces = {{"embed", &statement.embed}, {"head", &statement.head}};
  for (const auto& [letter, piece] : statement.layers) pieces.emplace(string(1, letter), &piece);
  return pieces;
}

char KindOfPiece(const string& name) { return name.size() == 1 ? name.front() : '\0'; }

Module PrimeModule(const ModelStatement& statement, int copies) {
  Module module;
  module.name = "model";
  module.kind = statement.kind;
  module.has_images = statement.has_images;
  module.carries_loss = statement.carries_loss;
  module.constants = Constants(statement).Typed(statement);
  for (const auto& [letter, piece] : statement.layers) {
    for (int i = 0; i < copies; ++i) {
      const string frame = absl::StrCat("model.layers.", module.layers.size());
      module.layers.push_back({.kind = letter, .frame = frame});
    }
  }
  return module;
}

std::vector<Module> InEveryCase(const ModelStatement& statement, const Module& module) {
  std::vector<Module> modules = {module};
  for (const StatedConstant& constant : statement.constants) {
    if (!constant.flag || !constant.otherwise) continue;
    std::vector<Module> cases;
    for (Module& each : modules) {
      for (int64_t value : {0, 1}) {
        each.constants.erase(constant.name);
        const double lacking = statement.NumberWithout(constant.name, each.constants);
        if (static_cast<double>(value) != lacking) each.constants[constant.name] = value;
        cases.push_back(each);
      }
    }
    modules = std::move(cases);
  }
  return modules;
}

}  // namespace planwright
