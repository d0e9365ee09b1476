#include "planner/plan/statement/prime_module.h"

#include <cmath>
#include <optional>
#include <set>
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

double AsReal(const Attribute& constant) {
  const int64_t* integer = std::get_if<int64_t>(&constant);
  return integer ? static_cast<double>(*integer) : std::get<double>(constant);
}

void AddNames(const std::optional<Expression>& formula, std::set<string>& names) {
  if (formula) names.insert(formula->names().begin(), formula->names().end());
}

// Constants that keep every line `needs`.
class Constants {
 public:
  // `given`: constants that have these numbers.
  Constants(const ModelStatement& statement, const Attributes& given) {
    int64_t prime = 11;
    for (const StatedConstant& constant : statement.constants)
      values_[constant.name] = constant.flag ? 1 : static_cast<double>(prime = NextPrime(prime));
    for (const auto& [name, value] : given) values_[name] = AsReal(value);
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
    if (need.relation == StatedNeed::Relation::kAxisAtMost || (need.when && Of(*need.when) == 0)) return false;
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
  module.constants = Constants(statement, {}).Typed(statement);
  for (const auto& [letter, piece] : statement.layers) {
    for (int i = 0; i < copies; ++i) {
      const string frame = absl::StrCat("model.layers.", module.layers.size());
      module.layers.push_back({.kind = letter, .frame = frame});
    }
  }
  return module;
}

std::vector<const StatedConstant*> TriedConstants(const ModelStatement& statement) {
  std::set<string> named;
  for (const auto& [name, piece] : PiecesOf(statement)) {
    for (const StatedWeight& weight : piece->weights) AddNames(weight.when, named);
    for (const StatedCompute& compute : piece->computes) {
      AddNames(compute.when, named);
      for (const StatedSetting& setting : compute.settings) {
        AddNames(setting.formula, named);
        named.insert(setting.text);
      }
    }
    for (const StatedProbe& probe : piece->probes) AddNames(probe.when, named);
    for (const StatedShare& share : piece->shared) AddNames(share.when, named);
    for (const StatedNeed& need : piece->needs) AddNames(need.when, named);
  }
  // A number is made of those before it.
  for (auto let = statement.lets.rbegin(); let != statement.lets.rend(); ++let) {
    if (named.contains(let->name)) AddNames(let->formula, named);
  }
  std::vector<const StatedConstant*> tried;
  for (const StatedConstant& constant : statement.constants) {
    if ((constant.flag && constant.otherwise) || (constant.or_zero && named.contains(constant.name)))
      tried.push_back(&constant);
  }
  return tried;
}

std::vector<Module> PrimeModules(const ModelStatement& statement, int copies) {
  std::vector<Module> modules = InEveryCase(statement, PrimeModule(statement, copies));
  for (Module& module : modules) {
    // What is 0 or a flag stays so. Other sizes follow from the lines that hold then.
    Attributes given;
    for (const StatedConstant* constant : TriedConstants(statement)) {
      const auto known = module.constants.find(constant->name);
      if (known == module.constants.end()) {
        given[constant->name] = statement.NumberWithout(constant->name, module.constants);
      } else if (constant->flag || AsReal(known->second) == 0) {
        given[constant->name] = known->second;
      }
    }
    Attributes constants = Constants(statement, given).Typed(statement);
    for (const auto& [name, value] : given) {
      const auto known = module.constants.find(name);
      constants.erase(name);
      if (known != module.constants.end()) constants.insert(*known);
    }
    module.constants = std::move(constants);
  }
  return modules;
}

std::vector<Module> InEveryCase(const ModelStatement& statement, const Module& module) {
  std::vector<Module> modules = {module};
  for (const StatedConstant* constant : TriedConstants(statement)) {
    std::vector<Module> cases;
    for (const Module& each : modules) {
      for (const bool zero : {true, false}) {
        Module& made = cases.emplace_back(each);
        const auto of_module = module.constants.find(constant->name);
        Attribute value = of_module == module.constants.end() || constant->flag ? int64_t{1} : of_module->second;
        if (zero) value = constant->real ? Attribute(0.0) : Attribute(int64_t{0});
        made.constants.erase(constant->name);
        const double lacking = statement.NumberWithout(constant->name, made.constants);
        if (AsReal(value) != lacking) made.constants[constant->name] = value;
      }
    }
    modules = std::move(cases);
  }
  return modules;
}

}  // namespace planwright
